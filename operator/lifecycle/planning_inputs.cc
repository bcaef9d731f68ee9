#include "operator/lifecycle/planning_inputs.h"

#include "common/base/hash.h"

namespace medley::ops::lifecycle {

std::string PlanningInputs::PolicyHash() const { return base::HashHex(policy); }

PlanningInputs InputsOf(const TrainingJob& job, const UsablePools& pools) {
  PlanningInputs inputs;
  inputs.prices = pools.prices;
  inputs.cheaper = pools.cheaper;
  inputs.units = pools.Units();
  kube::Json policy = kube::Json::object();
  for (const char* part : {"objective", "elasticity", "planner", "resources"}) {
    if (job.spec.contains(part)) policy[part] = job.spec[part];
  }
  inputs.policy = policy.dump();
  return inputs;
}

}  // namespace medley::ops::lifecycle
