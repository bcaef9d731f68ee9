// The ends of a job: suspension, deadline, completion, failure, cleaning up, deletion.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "operator/api/training_job.h"

namespace medley::ops::lifecycle {

class Pass;

// Takes a checkpoint, then deletes the pods and the plan. Idempotent; takes several passes.
absl::Status Suspend(Pass& pass, const TrainingJob& job);
// True while the coordinator takes the checkpoint: the suspension goes on even if nobody wants it any more, because the
// coordinator ends.
bool IsSuspending(const Pass& pass);
// Ends a suspension, if there is one.
void Resume(Pass& pass);

// The job was active for longer than spec.runPolicy.activeDeadlineSeconds.
bool IsPastDeadline(Pass& pass, const TrainingJob& job);

// Writes the outcome, then cleans up. Does nothing for a job that is finished.
absl::Status Finish(Pass& pass, const TrainingJob& job, bool complete, Reason reason, const std::string& message);
// What a finished job still needs: its pods cleaned up, and the job deleted after its time to live.
absl::Status CleanUpFinished(Pass& pass, const RunPolicy& policy);
// Finalizes a job that is being deleted: deletes its pods, then removes the finalizer. It does not wait for pods on
// nodes that do not answer, once their deletion is overdue.
absl::Status Finalize(Pass& pass);

}  // namespace medley::ops::lifecycle
