// All stages that a plan of the problem may have, as the edges of a graph from layer to layer.
//
// A plan is a path from the first layer to the last; neighbouring stages may be of one type. Immutable and thread-safe.
// The problem must outlive it. Size: layers^2 / 2 * types.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "scheduler-service/cost/problem.h"

namespace medley::sched {

// Layers first..last (inclusive) on one type.
struct PossibleStage {
  int first = 0;
  int last = 0;
  int type = 0;
  StageTerms terms;
  ServerLoad load;
  double slowest = 0;  // samples/s with the fewest units
  double fastest = 0;  // samples/s with the type's limit
};

// The largest size of a graph: about 50 MB, and visiting all stages once takes about a second.
inline constexpr int64_t kMostPossibleStages = 400'000;

class StageGraph {
 public:
  // InvalidArgument if the problem may have more than kMostPossibleStages stages.
  static absl::Status CheckSize(const Problem& problem);

  // With `schedule`, the type of each layer, only the stages of plans that keep it. With `most_stages` 1, only
  // those of plans of one stage; other numbers do not matter here.
  explicit StageGraph(const Problem& problem, const std::vector<int>* schedule = nullptr, int most_stages = 0);

  const Problem& problem() const { return problem_; }
  // Ordered by (first, type, last). Does not contain stages on types whose limit is below minUnits.
  const std::vector<PossibleStage>& stages() const { return stages_; }
  const PossibleStage& stage(int i) const { return stages_[static_cast<size_t>(i)]; }
  // 0, 1, ... stages().size() - 1.
  std::vector<int> All() const;
  bool has_servers() const { return has_servers_; }

  // The smallest number of units of stage `i` for x samples/s; 0 if no number is enough. Equal to Problem::MinUnits.
  int UnitsAt(int i, double x) const;
  double ThroughputOf(int i, int units) const { return problem_.Throughput(stage(i).terms, units); }

  // Bounds of the throughput of all plans; SlowestThroughput is infinite if no stage is possible.
  double SlowestThroughput() const;
  double FastestThroughput() const;

 private:
  const Problem& problem_;
  std::vector<PossibleStage> stages_;
  bool has_servers_ = false;
};

// The least sum of weights to (or from) a layer, and the stage adjacent to that layer on this path; the caller defines
// the stage's number.
struct LeastSum {
  double least = std::numeric_limits<double>::infinity();
  int stage = -1;

  void Offer(double value, int of_stage) {
    if (!(value < least)) return;
    least = value;
    stage = of_stage;
  }
};

}  // namespace medley::sched
