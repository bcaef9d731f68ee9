#include "reproductions/heterog/bench/graph/brute_force.h"

#include <algorithm>

#include "scheduler-service/graph/strategy.h"

namespace medley::reproductions::heterog {

using sched::OrderBy;

BruteForce::BruteForce(const sched::GraphQuestion& q)
    : q_(q), bound_(q.problem, q.groups), strategy_(Uniform(q, 0, 0, OrderBy::kRank)) {
  actions_.resize(strategy_.actions.size());
  for (int action = 0; action < sched::ActionCount(q.problem); ++action) {
    const auto canonical = sched::Canonical(q.problem, q.groups, Uniform(q, action, 0, OrderBy::kRank)).actions;
    for (size_t g = 0; g < actions_.size(); ++g) {
      if (canonical[g] == action) actions_[g].push_back(action);
    }
  }
}

double BruteForce::Best(double known) {
  best_ = known;
  Branch(0);
  return best_;
}

void BruteForce::Branch(size_t group) {
  if (bound_.Reaches(strategy_.actions, group, best_)) return;
  if (group < actions_.size()) {
    for (const int action : actions_[group]) {
      strategy_.actions[group] = action;
      Branch(group + 1);
    }
    return;
  }
  for (const int64_t bytes : BucketSizes(q_.problem)) {
    strategy_.bucket_bytes = bytes;
    for (const OrderBy order : sched::kOrders) {
      strategy_.order = order;
      best_ = std::min(best_, q_.timer.Seconds(strategy_));
    }
  }
}

}  // namespace medley::reproductions::heterog
