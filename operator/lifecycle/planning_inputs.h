// What a plan was last considered with. When a part changes, another plan is considered.
#pragma once

#include <map>
#include <string>

#include "operator/api/training_job.h"
#include "operator/lifecycle/pools.h"

namespace medley::ops::lifecycle {

struct PlanningInputs {
  std::map<std::string, double> prices;
  std::map<std::string, double> cheaper;  // of other zones than those that the job keeps, by pool
  std::map<std::string, int> units;
  std::string policy;  // objective, elasticity, planner and resources of the spec
  std::string PolicyHash() const;
  bool operator==(const PlanningInputs&) const = default;
};

PlanningInputs InputsOf(const TrainingJob& job, const UsablePools& pools);

}  // namespace medley::ops::lifecycle
