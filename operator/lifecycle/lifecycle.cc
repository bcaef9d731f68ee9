#include "operator/lifecycle/lifecycle.h"

#include "common/base/status.h"
#include "operator/lifecycle/finishing.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/planning.h"
#include "operator/lifecycle/pods.h"
#include "operator/lifecycle/running.h"
#include "operator/lifecycle/spending.h"
#include "operator/lifecycle/stored_plan.h"

namespace medley::ops::lifecycle {
namespace {

// For a job that is neither deleted nor finished.
absl::Status Advance(Pass& pass, const TrainingJob& job, const JobInput& input) {
  JobStatus& status = pass.report;
  if (!input.problems.empty()) {
    RefuseSpec(pass, input);
    MEDLEY_RETURN_IF_ERROR(ReadStoredPlan(pass));
    // A job that has a plan goes on with the spec it was admitted with; only the edit is refused.
    if (!pass.memory.stored_plan.record) return absl::OkStatus();
  } else {
    AcceptSpec(pass);
  }
  status.observed_generation = pass.object.generation();
  MEDLEY_RETURN_IF_ERROR(EnsureFinalizer(pass));
  MEDLEY_RETURN_IF_ERROR(ReadStoredPlan(pass));
  MEDLEY_RETURN_IF_ERROR(KeepUnitsReserved(pass));
  if (job.run_policy.suspend || IsSuspending(pass)) return Suspend(pass, job);
  Resume(pass);
  if (status.start_time.empty()) status.start_time = base::FormatTime(pass.world.now);
  if (IsPastDeadline(pass, job)) {
    return Finish(pass, job, false, Reason::kDeadlineExceeded,
                  "the job was active for longer than spec.runPolicy.activeDeadlineSeconds");
  }
  MEDLEY_RETURN_IF_ERROR(KeepStoredPlan(pass, job));
  MEDLEY_RETURN_IF_ERROR(KeepBaseObjects(pass, job));
  MEDLEY_RETURN_IF_ERROR(pass.memory.stored_plan.record ? RunPlan(pass, job) : MakeFirstPlan(pass, job));
  pass.RequeueAfter(IsSettled(pass, job) ? pass.options.settled_recheck : pass.options.recheck);
  return absl::OkStatus();
}

absl::Status Run(Pass& pass, const JobInput& input) {
  if (pass.object.deleting()) return Finalize(pass);
  if (pass.report.finished()) {
    return CleanUpFinished(pass, input.job ? input.job->run_policy : RunPolicy());
  }
  if (!input.job) {
    RefuseSpec(pass, input);
    return absl::OkStatus();
  }
  return Advance(pass, *input.job, input);
}

}  // namespace

Decision Decide(const JobInput& input, const World& world, Memory memory, const Respond& respond,
                const JobOptions& options) {
  Pass pass(*input.object, world, std::move(memory), respond, options);
  pass.profile_hash = input.profile_hash;
  LoadStatus(pass);
  CountSpending(pass);
  ForgetDeletedPods(pass);
  absl::Status status = DeleteCopies(pass);
  if (status.ok()) status = Run(pass, input);
  // The status reports what was done even where a later step failed.
  if (!pass.unanswered() && !pass.object.deleting()) {
    const absl::Status written = WriteStatus(pass);
    if (status.ok()) status = written;
  }
  Decision decision;
  decision.unanswered = pass.unanswered();
  if (decision.unanswered) return decision;
  if (status.ok()) decision.requeue_after = pass.requeue_after();
  decision.status = std::move(status);
  decision.memory = pass.TakeMemory();
  decision.effects = pass.TakeEffects();
  decision.observed = pass.observed;
  decision.line = pass.line;
  decision.turn = pass.turn;
  return decision;
}

}  // namespace medley::ops::lifecycle
