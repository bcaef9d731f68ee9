// Parses Prometheus' responses to instant queries, and the prices in them. Pure.
//
// The time in a result's `value` is the time of the evaluation; the sample may be up to 5 minutes older (Prometheus'
// look-back). A second query with timestamp() returns the time of the sample. Both times are by Prometheus' clock, so
// their difference is the sample's age even if our clock differs.
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
  std::vector<std::string> warnings;  // from Prometheus: the data may be incomplete
};

// Parses the response body of GET /api/v1/query for an expression that returns a vector. Errors: Prometheus' own error
// (bad_data and execution: InvalidArgument; others: Unavailable); InvalidArgument for any other type of result.
absl::StatusOr<PromVector> ParsePromVector(std::string_view body);

// The PromQL queries, for the feed and its tests.
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
// Provider and region for series whose labels do not have them.
struct PromPlace {
  std::string provider;  // Karpenter: empty means "aws"; OpenCost: used if provider_id has no provider
  std::string region;    // used if neither a label nor the zone has the region
};

// Returns one entry for each (instance type, capacity type, zone). Skips prices of 0 or NaN (Karpenter's value for
// "unknown") and the capacity type `reserved`, whose value is a rank (a ten-millionth of on-demand) and not a price.
// Errors: InvalidArgument naming series and value, for an infinite or negative price or a missing label.
absl::StatusOr<ParsedPrices> KarpenterPrices(const KarpenterAnswers& answers, const PromPlace& place,
                                             base::WallTime now);

// Returns one entry for each node. Skips prices of 0 or NaN, nodes without an instance type, and, with a warning, nodes
// that have OpenCost's built-in default prices because OpenCost does not know theirs.
absl::StatusOr<ParsedPrices> OpenCostPrices(const OpenCostAnswers& answers, const PromPlace& place, base::WallTime now);

}  // namespace medley::sched
