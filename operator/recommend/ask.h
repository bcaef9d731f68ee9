// What a job of another controller asks of a recommendation, in annotations. Immutable values; pure, thread-safe.
//
//   medley.dev/throughput: '{"gpu-spot": 1200, "gpu": {"1": 1300, "4": 4700}}'   samples/s of one node (k nodes: k
//                                           times that), or of measured sizes, which alone may then be chosen
//   medley.dev/samples: "1e8"               in all; without it, the fewest USD per hour count
//   medley.dev/units: "1,2,4,8"             the numbers of nodes that may be chosen; default: what the job says, or any
//   medley.dev/pools: "gpu,gpu-spot"        default: all that the throughput names
//   medley.dev/deadline: 12h                from the resumption; medley.dev/budget-usd, medley.dev/min-throughput,
//   medley.dev/max-usd-per-hour             bounds
//   medley.dev/fastest: "true"              the fewest seconds within the bounds, instead of the fewest USD
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <vector>

#include "common/model/planning.h"
#include "kube/object.h"

namespace medley::ops::recommend {

struct PoolSpeed {
  double of_one = 0;               // samples/s of one node; 0: only the sizes of `measured`
  std::map<int, double> measured;  // nodes -> samples/s of them together
  // What `nodes` reach together; 0: not known.
  double Of(int nodes) const;
};

struct Ask {
  std::map<std::string, PoolSpeed> speeds;
  std::vector<std::string> pools;  // in the order of preference among equally good ones
  std::vector<int> sizes;          // ascending; empty: not said
  double samples = 0;              // 0: not said
  model::Constraints bounds;
  model::Objective objective = model::Objective::kCost;
};

// The most nodes of a size; more are a mistake.
inline constexpr int kMostNodes = 100'000;

// Errors: InvalidArgument that names the annotation, also for an unknown one that begins with medley.dev/.
absl::StatusOr<Ask> ReadAsk(const kube::Object& job);

}  // namespace medley::ops::recommend
