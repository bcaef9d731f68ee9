#include "operator/lifecycle/goal.h"

namespace medley::ops::lifecycle {

bool ReachesGoal(const Objective& goal, const Measured& measured) {
  if (measured.throughput <= 0) return false;
  const double seconds = measured.remaining_samples / measured.throughput;
  const auto within = [](double value, double limit) { return limit <= 0 || value <= limit; };  // 0: no goal
  return measured.throughput >= goal.min_throughput &&                                          //
         within(measured.usd_per_hour, goal.max_usd_per_hour) &&                                //
         within(measured.elapsed_seconds + seconds, goal.deadline_seconds) &&                   //
         within(measured.spent_usd + measured.usd_per_hour * seconds / 3600, goal.budget_usd);
}

bool HasWantedUnits(const Elasticity& elasticity, const model::ExecutionPlan& plan) {
  int trainers = 0;
  for (const model::Stage& stage : plan.stages) {
    for (const model::Group& group : stage.groups) {
      if (group.units < elasticity.min_units) return false;
      trainers += group.units;
    }
  }
  trainers += static_cast<int>(plan.devices.size());
  return trainers <= elasticity.max_units;
}

}  // namespace medley::ops::lifecycle
