// Restarts: a coordinator that was lost, restarted in place or has ended, and jobs that fail.
//
// A restart counts towards spec.runPolicy.backoffLimit unless it was a disruption: the pod was deleted or evicted, or
// its node was lost. The count begins again when the job has come further than at the last restart that counted.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "operator/api/training_job.h"

namespace medley::ops::lifecycle {

class Pass;

// Call it when the status shows the latest observation.
void ForgetRestartsAfterProgress(Pass& pass, const TrainingJob& job);

// Handles a coordinator that was lost, restarted or has ended. Sets `over` when this pass has nothing more to do.
absl::Status CheckCoordinator(Pass& pass, const TrainingJob& job, bool* over);

// Replaces all pods under the same plan, for a reason that is not the job's fault.
absl::Status RestartFromCheckpoint(Pass& pass, const TrainingJob& job, const std::string& why);

}  // namespace medley::ops::lifecycle
