#include "operator/lifecycle/restarts.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/base/utf8.h"
#include "operator/api/cause.h"
#include "operator/api/names.h"
#include "operator/lifecycle/finishing.h"
#include "operator/lifecycle/observing.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/planning.h"
#include "operator/lifecycle/pod_state.h"
#include "operator/lifecycle/pods.h"
#include "operator/lifecycle/running.h"
#include "operator/lifecycle/succession.h"
#include "operator/records/left_result.h"

namespace medley::ops::lifecycle {
namespace {

using job_result::JobResult;

constexpr base::nanoseconds kRestartDelay = base::seconds(1);

// Why a restart is necessary. A disruption does not count towards the backoff limit.
enum class Fault { kJob, kDisruption };

// A crash that happens again and again at one place brings the job as far each time. Without checkpoints a restart
// begins anew, so only more samples than ever are progress.
int64_t ProgressOf(const TrainingJob& job, const JobStatus& status) {
  if (!status.observed) return 0;
  return job.keeps_checkpoints() ? status.observed->last_checkpoint_step : status.observed->samples;
}

// `failed`: the job has had more restarts than it may have, and is finished now.
absl::Status CountJobRestarts(Pass& pass, const TrainingJob& job, int count, Fault fault, const std::string& message,
                              bool* failed) {
  JobStatus& status = pass.report;
  status.restarts += count;
  pass.Publish(CountRestarts{count});
  SetCondition(pass, kRestartingCondition, ConditionStatus::kTrue, Reason::kCoordinatorRestarted, message);
  if (fault == Fault::kDisruption) {
    pass.Warning("Restarting", message + "; a disruption does not count towards spec.runPolicy.backoffLimit");
    return absl::OkStatus();
  }
  status.counted_restarts += count;
  status.restart_progress = std::max(status.restart_progress, ProgressOf(job, status));
  const int limit = job.run_policy.backoff_limit;
  if (status.counted_restarts > limit) {
    *failed = true;
    return Finish(pass, job, false, Reason::kBackoffLimitExceeded,
                  CauseFirst(message, fmt::format("{} restarts without progress, spec.runPolicy.backoffLimit allows {}",
                                                  status.counted_restarts, limit)));
  }
  pass.Warning("Restarting", CauseFirst(message, fmt::format("Restart {} of at most {} without progress",
                                                             status.counted_restarts, limit)));
  return absl::OkStatus();
}

// All pods are deleted, and created again under the same plan; training resumes from the last checkpoint.
absl::Status Restart(Pass& pass, const TrainingJob& job, Reason reason, Fault fault, const std::string& message) {
  bool failed = false;
  MEDLEY_RETURN_IF_ERROR(CountJobRestarts(pass, job, 1, fault, message, &failed));
  if (failed) return absl::OkStatus();
  SetCondition(pass, kRestartingCondition, ConditionStatus::kTrue, reason, message);
  SetCondition(pass, kRunningCondition, ConditionStatus::kFalse, reason, message);
  PlanRecord record = *pass.memory.stored_plan.record;
  record.KeepCoordinatorOf(PlanRecord{.coordinator_pod = record.coordinator_pod});
  RenewCoordinator(pass, job, record);
  MEDLEY_RETURN_IF_ERROR(StorePlan(pass, job, record));
  ForgetCoordinator(pass);
  // Before the pods are deleted, so that a restart is never counted twice.
  MEDLEY_RETURN_IF_ERROR(WriteStatus(pass));
  pass.RequeueAfter(kRestartDelay);
  return DeletePodsOf(pass, WhichPods::kAll);
}

std::string CompleteMessage(int64_t samples, int64_t step) {
  return fmt::format("{} samples trained in {} steps", samples, step);
}

std::string ReasonIn(const JobResult& result) { return base::Printable(result.reason, job_result::kMostReasonBytes); }

// It exits with 0 only when the training is complete, or when it was suspended, which nobody asks for here.
absl::Status HandleSuccess(Pass& pass, const TrainingJob& job, const absl::StatusOr<JobResult>& left) {
  if (!left.ok()) {
    return Finish(pass, job, true, Reason::kTrainingComplete,
                  CauseFirst("the coordinator ended: the training is complete",
                             "Nobody has read its last report, and " + base::Message(left.status()) +
                                 ": status shows what was observed before"));
  }
  RecordResult(pass, *left);
  if (left->phase == job_result::Phase::kSuspended) {
    return Restart(pass, job, Reason::kCoordinatorLost, Fault::kDisruption,
                   fmt::format("the coordinator was suspended, with a checkpoint of step {}, and ended",
                               left->last_checkpoint_step));
  }
  if (left->stopped_early && !left->reason.empty())
    return Finish(pass, job, true, Reason::kStoppedEarly, ReasonIn(*left));
  return Finish(pass, job, true, Reason::kTrainingComplete, CompleteMessage(left->samples, left->step));
}

// Why a coordinator has failed: from its result, else from its log. nullopt: not known yet.
absl::StatusOr<std::optional<std::string>> WhyFailed(Pass& pass, const kube::Object& pod,
                                                     const absl::StatusOr<JobResult>& left) {
  if (!left.ok() || left->reason.empty()) return LastLineOf(pass, pod);
  return std::optional<std::string>(ReasonIn(*left));
}

absl::Status HandleEnd(Pass& pass, const TrainingJob& job, const kube::Object& pod) {
  const absl::StatusOr<JobResult> left = LeftResult(pod, job.object.uid(), pass.report.observed);
  if (WorkerHasSucceeded(pod)) return HandleSuccess(pass, job, left);
  const bool is_permanent = ExitCode(pod) == kPermanentFailure;
  if (!is_permanent && WasDisrupted(pod)) {  // its log is on a node that may not answer
    return Restart(pass, job, Reason::kCoordinatorLost, Fault::kDisruption,
                   fmt::format("the coordinator's pod was lost: {}", DisruptionOf(pod)));
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<std::string> why, WhyFailed(pass, pod, left));
  if (!why) return absl::OkStatus();
  if (left.ok()) RecordResult(pass, *left);
  if (is_permanent) return Finish(pass, job, false, Reason::kTrainingFailed, *why);
  return Restart(pass, job, Reason::kCoordinatorFailed, Fault::kJob,
                 why->empty() ? "the coordinator's pod failed" : *why);
}

absl::Status HandleRestartInPlace(Pass& pass, const TrainingJob& job, const kube::Object& pod, bool* over) {
  const absl::StatusOr<JobResult> left = LeftResult(pod, job.object.uid(), pass.report.observed, "lastState");
  if (ExitCode(pod, "lastState") == kPermanentFailure) {
    *over = true;
    MEDLEY_ASSIGN_OR_RETURN(const std::optional<std::string> why, WhyFailed(pass, pod, left));
    if (!why) return absl::OkStatus();
    if (left.ok()) RecordResult(pass, *left);
    return Finish(pass, job, false, Reason::kTrainingFailed,
                  CauseFirst(*why, "The coordinator failed, and a restart will not help"));
  }
  const int restarts = RestartCount(pod);
  const int more = restarts - pass.memory.stored_plan.record->coordinator_restarts;
  MEDLEY_RETURN_IF_ERROR(StoreCoordinator(pass, job, pod.uid(), restarts));
  if (WasRebooted(pod)) {
    return CountJobRestarts(pass, job, more, Fault::kDisruption, "the coordinator's node was started again", over);
  }
  const std::string in_place = "the coordinator was restarted in place";
  return CountJobRestarts(pass, job, more, Fault::kJob,
                          left.ok() && !left->reason.empty() ? CauseFirst(ReasonIn(*left), in_place) : in_place, over);
}

}  // namespace

void ForgetRestartsAfterProgress(Pass& pass, const TrainingJob& job) {
  JobStatus& status = pass.report;
  if (status.counted_restarts > 0 && ProgressOf(job, status) > status.restart_progress) status.counted_restarts = 0;
}

absl::Status CheckCoordinator(Pass& pass, const TrainingJob& job, bool* over) {
  MEDLEY_RETURN_IF_ERROR(CheckObservedLeader(pass));
  *over = true;
  if (pass.observed != nullptr && pass.observed->phase == JobPhase::kComplete) {
    RecordObservation(pass);
    if (pass.observed->stopped_early) return Finish(pass, job, true, Reason::kStoppedEarly, pass.observed->message);
    return Finish(pass, job, true, Reason::kTrainingComplete,
                  CompleteMessage(pass.observed->samples_done, pass.observed->step));
  }
  if (pass.observed != nullptr && pass.observed->phase == JobPhase::kFailed) {
    RecordObservation(pass);
    const std::string why = pass.observed->message.empty() ? "the coordinator gave no reason" : pass.observed->message;
    if (!pass.observed->retryable) return Finish(pass, job, false, Reason::kTrainingFailed, why);
    return Restart(pass, job, Reason::kTrainingFailed, Fault::kJob, why);
  }
  const PlanRecord& record = *pass.memory.stored_plan.record;
  const kube::ObjectPtr pod = pass.Pod(record.CoordinatorPodName(job.name()));
  MEDLEY_ASSIGN_OR_RETURN(*over, ReplaceCoordinator(pass, job, pod));
  if (*over) return absl::OkStatus();
  *over = true;
  if (pod != nullptr && !record.coordinator_uid.empty() && IsLost(pass, *pod)) {
    return Restart(pass, job, Reason::kCoordinatorLost, Fault::kDisruption,
                   fmt::format("the coordinator's node {} does not answer", pod->String("/spec/nodeName")));
  }
  if (pod == nullptr && !record.coordinator_uid.empty()) {
    return Restart(pass, job, Reason::kCoordinatorLost, Fault::kDisruption, "the coordinator's pod was deleted");
  }
  if (pod != nullptr && !pass.IsTerminating(*pod) && WorkerHasEnded(*pod)) return HandleEnd(pass, job, *pod);
  *over = false;
  const bool restarted = pod != nullptr && !pass.IsTerminating(*pod) && pod->uid() == record.coordinator_uid &&
                         RestartCount(*pod) > record.coordinator_restarts;
  return restarted ? HandleRestartInPlace(pass, job, *pod, over) : absl::OkStatus();
}

absl::Status RestartFromCheckpoint(Pass& pass, const TrainingJob& job, const std::string& why) {
  return Restart(pass, job, Reason::kCoordinatorRestarted, Fault::kDisruption, why);
}

}  // namespace medley::ops::lifecycle
