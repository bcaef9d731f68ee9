#include "scheduler-service/graph/timer.h"

#include "common/base/status.h"

namespace medley::sched {

double GraphTimer::Seconds(const GraphStrategy& strategy) {
  const auto found = known_.find(strategy);
  if (found != known_.end()) return found->second;
  if (Spent()) return kForever;
  double& seconds = known_.emplace(strategy, kForever).first->second;
  const auto plan = BuildGraphPlan(problem_, groups_, strategy);
  const auto timed = plan.ok() ? evaluator_.Seconds(*plan) : plan.status();
  if (!timed.ok()) {
    why_ = base::Message(timed.status());
    return kForever;
  }
  seconds = *timed;
  if (seconds < best_seconds_) {
    best_seconds_ = seconds;
    best_ = strategy;
    limits_.Report(*plan, seconds);
  }
  return seconds;
}

}  // namespace medley::sched
