// Plans that the coordinator has given up, because one of their members can never run them: a pool without the job's
// data, for example. The job goes back to the plan in force and takes no more units of that pool for a growing time.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>

#include "common/base/clock.h"
#include "operator/api/training_job.h"

namespace medley::ops::lifecycle {

class Pass;

struct RefusalState {
  struct SetAside {
    int times = 0;
    base::SteadyTime until{};
  };
  std::map<std::string, SetAside> pools;  // by name
};

// True when the job went back to the plan in force. Needs `pass.observed`.
absl::StatusOr<bool> LeaveRefusedPlan(Pass& pass, const TrainingJob& job);

// The job takes no more units of this pool than it holds.
bool IsSetAside(const Pass& pass, const std::string& pool);

}  // namespace medley::ops::lifecycle
