// Every stage that a plan of the problem may have, as the edges of a graph from layer to layer.
//
// A schedule is a path from layer 0 to the last one whose neighbouring stages differ in type. Immutable and
// thread-safe; the problem outlives it. Size: layers^2 / 2 * types.
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

// What a graph may hold: some 50 MB, and a first look at all of it takes about a second.
inline constexpr int64_t kMostPossibleStages = 400'000;

class StageGraph {
 public:
  // InvalidArgument when the problem may have more possible stages than kMostPossibleStages.
  static absl::Status CheckSize(const Problem& problem);

  explicit StageGraph(const Problem& problem);

  const Problem& problem() const { return problem_; }
  // Ordered by (first, type, last). Stages of types whose limit is below minUnits are not among them.
  const std::vector<PossibleStage>& stages() const { return stages_; }
  const PossibleStage& stage(int i) const { return stages_[static_cast<size_t>(i)]; }
  // 0, 1, ... stages().size() - 1.
  std::vector<int> All() const;
  bool has_servers() const { return has_servers_; }

  // The smallest units of stage `i` for x samples/s; 0: out of reach. Same values as Problem::MinUnits.
  int UnitsAt(int i, double x) const;
  double ThroughputOf(int i, int units) const { return problem_.Throughput(stage(i).terms, units); }

  // Bounds of the throughput of any plan; SlowestThroughput is infinite when no stage is possible.
  double SlowestThroughput() const;
  double FastestThroughput() const;

 private:
  const Problem& problem_;
  std::vector<PossibleStage> stages_;
  bool has_servers_ = false;
};

// The least sum of weights to (or from) a layer, over all types and over all types but the best: a stage of type `t`
// may follow only a stage of another type.
struct TwoBest {
  double least = std::numeric_limits<double>::infinity();
  double second = std::numeric_limits<double>::infinity();  // of another type than `least`
  int type = -1;
  int stage = -1;  // the stage next to this layer on the least path; a caller's number
  int second_stage = -1;

  double Without(int t) const { return t == type ? second : least; }
  int StageWithout(int t) const { return t == type ? second_stage : stage; }
  void Offer(double value, int of_type, int of_stage) {
    if (value < least) {
      if (of_type != type) {
        second = least;
        second_stage = stage;
      }
      least = value;
      type = of_type;
      stage = of_stage;
    } else if (of_type != type && value < second) {
      second = value;
      second_stage = of_stage;
    }
  }
};

}  // namespace medley::sched
