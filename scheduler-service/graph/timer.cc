#include "scheduler-service/graph/timer.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/model/execution_plan.h"

namespace medley::sched {

double GraphTimer::Seconds(const GraphStrategy& strategy) {
  const GraphStrategy canonical = Canonical(problem_, groups_, strategy);
  const auto found = known_.find(canonical);
  if (found != known_.end()) return found->second.seconds;
  if (Spent()) return kForever;
  Known& known = known_[canonical];
  auto plan = BuildGraphPlan(problem_, groups_, canonical);
  auto timed = plan.ok() ? judge_.Within(*plan) : plan.status();
  if (plan.ok() && absl::IsResourceExhausted(timed.status()) && !Spent()) {
    plan->schedule.without_undo = known.without_undo = true;
    timed = judge_.Within(*plan);
  }
  if (!timed.ok()) {
    known.why = why_ = base::Message(timed.status());
    return kForever;
  }
  known.seconds = timed->seconds;
  if (canonical.counts.empty()) best_whole_ = std::min(best_whole_, timed->seconds);
  if (timed->seconds < best_figures_.seconds) {
    best_figures_ = *timed;
    best_ = strategy;
    limits_.Report(*plan, *timed);
  }
  return timed->seconds;
}

std::string GraphTimer::WhyNot(const GraphStrategy& strategy) const {
  const auto found = known_.find(Canonical(problem_, groups_, strategy));
  return found == known_.end() ? "it was not simulated" : found->second.why;
}

absl::StatusOr<model::ExecutionPlan> GraphTimer::Plan(const GraphStrategy& strategy) const {
  MEDLEY_ASSIGN_OR_RETURN(model::ExecutionPlan plan, BuildGraphPlan(problem_, groups_, strategy));
  const auto found = known_.find(Canonical(problem_, groups_, strategy));
  plan.schedule.without_undo = found != known_.end() && found->second.without_undo;
  return plan;
}

}  // namespace medley::sched
