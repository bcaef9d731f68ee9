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

// Lost when the operator restarts.
struct RefusalState {
  static constexpr char kOwner[] = "refusal";
  struct SetAside {
    int times = 0;             // refusals so far
    base::SteadyTime until{};  // end of the present pause: 10 min, doubled each time, at most 6 h
  };
  std::map<std::string, SetAside> pools;  // by name
};

// Goes back to the plan in force when the coordinator has refused the stored plan, and sets the pool of the member
// aside. Returns true when it did. Needs `pass.observed`. Errors: the plan could not be stored.
absl::StatusOr<bool> LeaveRefusedPlan(Pass& pass, const TrainingJob& job);

// Goes back to the plan in force from a stored plan that cannot run because of `pool`, which is set aside. `problem`: a
// sentence. False: nothing is in force that the job could go back to. Needs `pass.observed`.
absl::StatusOr<bool> GoBack(Pass& pass, const TrainingJob& job, const std::string& pool, const std::string& problem);

// True when the coordinator has given up the stored plan. Needs a plan.
bool IsRefused(const Pass& pass);

// True while the job takes no more units of this pool than it holds.
bool IsSetAside(const Pass& pass, const std::string& pool);

}  // namespace medley::ops::lifecycle
