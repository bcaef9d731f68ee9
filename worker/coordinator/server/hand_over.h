// How a coordinator with a term comes to lead its job: asks the one before to hand the job over, then claims it.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <stop_token>

#include "common/base/clock.h"
#include "worker/checkpoint/volume_thread.h"
#include "worker/claim/claims.h"
#include "worker/coordinator/server/server.h"

namespace medley::worker {

struct Lead {
  Claim claim;  // that was taken; of term 0 without a term
  // The coordinator before did not hand the job over, so it may still write to its files.
  bool former_may_run = false;
  // It said that it handed the job over. If its last record does not say so, it was started again and led on.
  bool handed_over = false;
};

// Repeats `write` every second until it returns something else than ResourceExhausted: a full volume must not end the
// coordinator, because each of its ends counts towards backoffLimit. Members keep their state meanwhile.
// Errors: Cancelled: `stop` was requested first; those of `write`.
absl::Status AwaitRoom(base::Clock& clock, std::stop_token stop, const std::function<absl::Status()>& write);

// Blocks for options.hand_over_timeout at most, and for options.journal_timeout for each of the two accesses to the
// volume, which `volume` runs; longer only while the volume has no room for the claim. A process of the same term is
// not asked: it is a former one of this pod, or one that should not exist, and it stops as soon as it sees the new
// claim. Without a term nothing is taken over. Errors: Aborted (a newer coordinator leads), FailedPrecondition (the
// other one refuses: the job is being suspended or over, or a newer coordinator takes over; the process exits and asks
// again when it is started again), Cancelled, DeadlineExceeded (the volume does not answer), those of the file system.
absl::StatusOr<Lead> TakeLead(VolumeThread& volume, const CoordinatorOptions& options, base::Clock& clock,
                              std::stop_token stop);

}  // namespace medley::worker
