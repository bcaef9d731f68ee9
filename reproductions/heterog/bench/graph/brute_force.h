// The best of all strategies of a small question. Not thread-safe.
#pragma once

#include <vector>

#include "scheduler-service/graph/search.h"
#include "scheduler-service/graph/strategy_bound.h"

namespace medley::reproductions::heterog {

// Leaves out only strategies of which a lower bound is not below the best so far (StrategyBound), and those with the
// plan of another one (Canonical).
class BruteForce {
 public:
  explicit BruteForce(const sched::GraphQuestion& q);

  // `known`: seconds of some strategy. The least seconds of a strategy with any size of buckets and any order.
  double Best(double known);

 private:
  void Branch(size_t group);

  const sched::GraphQuestion& q_;
  const sched::StrategyBound bound_;
  std::vector<std::vector<int>> actions_;  // by group: those that differ
  sched::GraphStrategy strategy_;
  double best_ = 0;
};

}  // namespace medley::reproductions::heterog
