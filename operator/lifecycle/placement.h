// Placement: pods of a plan that find no node although their units were counted as free, because of a constraint that
// is not counted, or because an autoscaler brings no node.
//
// A member that has waited for its pool's time leads to another plan (replanning.h). If there is none, the job goes
// back to the plan in force. A plan that has never run is released as a whole, so that its units serve other jobs, and
// the job is planned again after a pause. Of an autoscaled pool that is an outage, in which no job plans new units
// (operator/api/pool_outage.h).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "operator/api/training_job.h"
#include "operator/lifecycle/pause.h"

namespace medley::ops::lifecycle {

class Pass;

// Lost when the operator restarts.
struct PlacementState {
  static constexpr char kOwner[] = "placement";
  std::map<std::string, base::SteadyTime> unschedulable_since;  // by the pod's UID, or its name while it does not exist
  int released = 0;                                             // plans in a row, none of which has run
  Pause after_release;                                          // before the job is planned again
  std::optional<int64_t> until_quota_change;  // World::quota_changes then, if a change of it ends the pause
};

void ForgetReleases(Pass& pass);  // a plan is in force
// True while a job whose plan was released must not be planned.
bool PausesAfterRelease(Pass& pass);

// The pool of a member that has found no node, or was not admitted, for longer than a pod of the pool may
// take: JobOptions::schedule_window, or spec.provisionTimeout of an autoscaled pool. Empty: there is none.
absl::StatusOr<std::string> StuckPool(Pass& pass);

// No plan exists without the members of `pool` that find no node: leaves the stored plan. False: it is the plan in
// force, which the job keeps. Needs `pass.observed`. Errors: the plan could not be stored.
absl::StatusOr<bool> GiveUpPlacement(Pass& pass, const TrainingJob& job, const std::string& pool);

// Releases a plan whose coordinator finds no node or is not admitted. True when it did.
absl::StatusOr<bool> ReleaseIfCoordinatorIsStuck(Pass& pass, const TrainingJob& job);

}  // namespace medley::ops::lifecycle
