#include "reproductions/heterog/bench/graph/baselines.h"

#include <algorithm>

#include "scheduler-service/graph/balance.h"
#include "scheduler-service/planning/overlap.h"

namespace medley::reproductions::heterog {

using sched::ActionOf;
using sched::BucketSizes;
using sched::GraphStrategy;
using sched::kForever;
using sched::OrderBy;
using sched::Uniform;

double BaselineSeconds(const sched::GraphQuestion& q, int how, OrderBy order) {
  double best = kForever;
  for (const int64_t bytes : BucketSizes(q.problem)) {
    best = std::min(best, q.timer.Seconds(Uniform(q, q.problem.devices() + how, bytes, order)));
  }
  return best;
}

double BalancedCopies(const sched::GraphQuestion& q) {
  double least = kForever;
  for (const sched::Replicas how : {sched::Replicas::kProportionalServer, sched::Replicas::kProportionalAllreduce}) {
    for (const int64_t bytes : BucketSizes(q.problem)) {
      for (const OrderBy order : sched::kOrders) {
        GraphStrategy copies = Uniform(q, ActionOf(q.problem, how), bytes, order);
        copies.counts = BalancedCounts(q.problem, q.groups, copies.actions);
        least = std::min(least, q.timer.Seconds(copies));
      }
    }
  }
  return least;
}

}  // namespace medley::reproductions::heterog
