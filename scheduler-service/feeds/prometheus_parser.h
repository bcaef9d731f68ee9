// Prometheus' answers to instant queries, and the prices in them. Pure.
//
// The time in `value` of an answer is that of the evaluation, whatever the age of the sample (up to
// the look-back of 5 min): the sample's own time is asked for by timestamp(). Both are of
// Prometheus' clock, so their difference is the age, and our clocks may differ.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler-service/feeds/parsed_prices.h"

namespace medley::sched {

struct PromSample {
  std::map<std::string, std::string> labels;
  double evaluated = 0;  // seconds since 1970, Prometheus' clock
  double value = 0;      // may be NaN or infinite
};

struct PromVector {
  std::vector<PromSample> samples;
  std::vector<std::string> warnings;  // Prometheus' own: the data may not be whole
};

// The body of GET /api/v1/query for an expression that gives a vector. Errors: what Prometheus says
// in an error answer (bad_data and execution: InvalidArgument; others: Unavailable);
// InvalidArgument for anything else than a vector.
absl::StatusOr<PromVector> ParsePromVector(std::string_view body);

// The queries, for PrometheusFeed and its tests.
extern const char kKarpenterPrice[];
extern const char kKarpenterAvailable[];
extern const char kKarpenterSampled[];
extern const char kOpenCostPrice[];
extern const char kOpenCostSampled[];
extern const char kOpenCostGpus[];
extern const char kOpenCostSpot[];
extern const char kOpenCostDefaults[];

struct KarpenterAnswers {
  PromVector price, available, sampled;
};
struct OpenCostAnswers {
  PromVector price, sampled, gpus, spot, defaults;
};
// What the labels do not tell.
struct PromPlace {
  std::string provider;  // Karpenter: "aws" when empty; OpenCost: used where provider_id does not tell
  std::string region;    // used where neither label nor zone tell
};

// One entry for each (instance type, capacity type, zone). Left out: price 0 or NaN (Karpenter: not
// known), `reserved` (a ten-millionth of on-demand: a rank, not a price). Errors: InvalidArgument
// naming series and value: infinite or negative, a label that is absent.
absl::StatusOr<ParsedPrices> KarpenterPrices(const KarpenterAnswers& answers, const PromPlace& place,
                                             base::WallTime now);

// One entry for each node. Left out: price 0 or NaN, nodes without instance type, and those that
// OpenCost gave its built-in default prices because it does not know their own (a warning names
// them).
absl::StatusOr<ParsedPrices> OpenCostPrices(const OpenCostAnswers& answers, const PromPlace& place, base::WallTime now);

}  // namespace medley::sched
