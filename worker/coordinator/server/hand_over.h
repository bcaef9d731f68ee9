// How a coordinator with a term comes to lead its job: asks the one before to hand the job over, then claims it.
#pragma once

#include <absl/status/statusor.h>

#include <stop_token>

#include "worker/claim/claims.h"
#include "worker/coordinator/server/server.h"

namespace medley::worker {

// Blocks for options.hand_over_timeout at most. Returns whether the coordinator before may still run: it did not hand
// the job over, so its members have to be asked what they did. Errors: Aborted (a newer coordinator leads),
// FailedPrecondition (the other one refuses: the job is being suspended or over), Cancelled, file system.
absl::StatusOr<bool> TakeLead(const Claims& claims, const CoordinatorOptions& options, std::stop_token stop);

}  // namespace medley::worker
