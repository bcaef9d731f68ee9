// How a coordinator with a term comes to lead its job: asks the one before to hand the job over, then claims it.
#pragma once

#include <absl/status/statusor.h>

#include <stop_token>

#include "worker/checkpoint/volume_thread.h"
#include "worker/coordinator/server/server.h"

namespace medley::worker {

// Blocks for options.hand_over_timeout at most, and for options.journal_timeout for each of the two accesses to the
// volume, which `volume` runs. Returns whether the coordinator before may still run: it did not hand the job over, so
// its members have to be asked what they did. Without a term it takes nothing over. Errors: Aborted (a newer
// coordinator leads), FailedPrecondition (the other one refuses: the job is being suspended or over, or a newer
// coordinator takes over), Cancelled, DeadlineExceeded (the volume does not answer), those of the file system.
absl::StatusOr<bool> TakeLead(VolumeThread& volume, const CoordinatorOptions& options, std::stop_token stop);

}  // namespace medley::worker
