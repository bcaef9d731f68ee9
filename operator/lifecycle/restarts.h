// Restarts: a coordinator that was lost, restarted in place or has ended, and jobs that fail.
#pragma once

#include <absl/status/status.h>

#include "operator/api/training_job.h"

namespace medley::ops::lifecycle {

class Pass;

// Handles a coordinator that was lost, restarted or has ended. Sets `over` when this pass has nothing more to do.
absl::Status CheckCoordinator(Pass& pass, const TrainingJob& job, bool* over);

}  // namespace medley::ops::lifecycle
