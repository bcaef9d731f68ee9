#include "operator/lifecycle/finishing.h"

#include <algorithm>
#include <optional>

#include "common/base/status.h"
#include "kube/errors.h"
#include "kube/pod.h"
#include "operator/api/resources.h"
#include "operator/lifecycle/admission.h"
#include "operator/lifecycle/observing.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/planning.h"
#include "operator/lifecycle/pods.h"
#include "operator/lifecycle/running.h"
#include "operator/lifecycle/succession.h"
#include "operator/records/left_result.h"

namespace medley::ops::lifecycle {
namespace {

constexpr base::nanoseconds kDeletionRetry = base::seconds(1);
constexpr base::nanoseconds kCoordinatorRetry = base::seconds(1);
constexpr base::nanoseconds kCoordinatorEnds = base::seconds(30);  // after it has reported the end

bool IsSuspending(const JobStatus& status) {
  const Condition* suspended = status.conditions.Find(kSuspendedCondition);
  return suspended != nullptr && suspended->Has(Reason::kSuspending);
}

// Before the coordinator is asked: a coordinator that ends then was suspended, also for the next leader. False: the
// status could not be written yet.
absl::StatusOr<bool> StoreSuspending(Pass& pass) {
  const auto is_stored = [&] { return IsSuspending(JobStatus::FromJson(pass.memory.status.written->Unpack())); };
  if (is_stored()) return true;
  SetCondition(pass, kSuspendedCondition, ConditionStatus::kUnknown, Reason::kSuspending,
               "The coordinator takes a checkpoint and stops.");
  MEDLEY_RETURN_IF_ERROR(WriteStatus(pass));
  return is_stored();
}

// The coordinator cannot be asked now, but soon: it is starting, after a hand-over or in place.
absl::StatusOr<bool> WaitsForCoordinator(Pass& pass, const TrainingJob& job) {
  if (!pass.memory.stored_plan.record || !MayLead(pass, job)) return false;
  JobStatus& status = pass.report;
  if (!status.conditions.IsTrue(kRunningCondition)) return false;
  MEDLEY_ASSIGN_OR_RETURN(const bool stored, StoreSuspending(pass));
  pass.RequeueAfter(kCoordinatorRetry);
  if (!stored) return true;
  const std::string& since = status.conditions.Find(kSuspendedCondition)->last_transition_time;
  return SecondsSince(since, pass.world.now) < base::ToSeconds(pass.options.suspend_timeout);
}

// What a coordinator that nobody listened to has left in its pod. nullopt: it was not suspended, or runs.
std::optional<job_result::JobResult> ResultOfSuspended(Pass& pass, const TrainingJob& job) {
  const auto& record = pass.memory.stored_plan.record;
  const kube::ObjectPtr pod = record ? pass.Pod(record->CoordinatorPodName(job.name())) : nullptr;
  if (!IsSuspending(pass) || pod == nullptr || !WorkerHasEnded(*pod)) return std::nullopt;
  absl::StatusOr<job_result::JobResult> left = LeftResult(*pod, job.object.uid(), pass.report.observed);
  if (!left.ok() || left->phase != job_result::Phase::kSuspended) return std::nullopt;
  return *std::move(left);
}

// The checkpoint, and the conditions.
// False: the coordinator has not answered yet.
absl::StatusOr<bool> StopTraining(Pass& pass, const TrainingJob& job) {
  std::string what =
      IsSuspending(pass) ? "the coordinator has ended, after its last checkpoint" : "nothing was running";
  const std::optional<job_result::JobResult> left = ResultOfSuspended(pass, job);
  if (left) what = fmt::format("checkpoint at step {}", left->last_checkpoint_step);
  if (pass.memory.stored_plan.record) {
    MEDLEY_ASSIGN_OR_RETURN(const bool moved, PromoteSuccessor(pass, job, false));
    if (moved) return false;
    // An operator that has just started is not connected yet.
    MEDLEY_RETURN_IF_ERROR(ConnectToRunning(pass, job));
  }
  if (pass.coordinator.empty() && !left) {
    MEDLEY_ASSIGN_OR_RETURN(const bool waits, WaitsForCoordinator(pass, job));
    if (waits) return false;
  } else if (!pass.coordinator.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const bool stored, StoreSuspending(pass));
    if (!stored) return false;
    MEDLEY_ASSIGN_OR_RETURN(const SuspendTraining::Answer outcome,
                            pass.Ask(SuspendTraining{"spec.runPolicy.suspend", pass.options.suspend_timeout}));
    if (!outcome) return false;
    MEDLEY_RETURN_IF_ERROR(CheckStaleLeader(pass, outcome->step.status(), "suspend the job"));
    if (!outcome->step.ok()) {
      MEDLEY_ASSIGN_OR_RETURN(const bool moved, PromoteSuccessor(pass, job, true));
      if (moved) return false;
    }
    if (absl::IsUnavailable(outcome->step.status())) {
      MEDLEY_ASSIGN_OR_RETURN(const bool waits, WaitsForCoordinator(pass, job));
      if (waits) return false;
    }
    what = outcome->step.ok()
               ? fmt::format("checkpoint at step {}", *outcome->step)
               : "no checkpoint could be taken, so the last one counts: " + base::Message(outcome->step.status());
    pass.observed = outcome->observed;
  }
  if (pass.observed != nullptr) RecordObservation(pass);
  if (left && pass.coordinator.empty()) RecordResult(pass, *left);
  SetCondition(pass, kSuspendedCondition, ConditionStatus::kTrue, Reason::kSuspended, what);
  SetCondition(pass, kRunningCondition, ConditionStatus::kFalse, Reason::kSuspended, what);
  SetCondition(pass, kPodsReadyCondition, ConditionStatus::kFalse, Reason::kSuspended, what);
  pass.report.conditions.Remove(kRescalingCondition);
  pass.report.conditions.Remove(kRestartingCondition);
  pass.Event(Reason::kSuspended, what);
  return true;
}

}  // namespace

bool IsSuspending(const Pass& pass) { return IsSuspending(pass.report); }

absl::Status Suspend(Pass& pass, const TrainingJob& job) {
  JobStatus& status = pass.report;
  if (!status.conditions.IsTrue(kSuspendedCondition)) {
    MEDLEY_ASSIGN_OR_RETURN(const bool stopped, StopTraining(pass, job));
    if (!stopped) return absl::OkStatus();
  }
  status.start_time.clear();  // as Kubernetes does for its Jobs
  status.replicas = 0;
  ForgetCoordinator(pass);
  // A resumed job is planned again: prices and capacity will have changed.
  MEDLEY_RETURN_IF_ERROR(DeletePlan(pass));
  ForgetConsidered(pass);
  if (!job.run_policy.suspend) pass.RequeueAfter(base::nanoseconds(1));  // nobody wants it any more
  return DeletePodsOf(pass, WhichPods::kAll);
}

void Resume(Pass& pass) {
  JobStatus& status = pass.report;
  if (!status.conditions.IsTrue(kSuspendedCondition)) return;
  SetCondition(pass, kSuspendedCondition, ConditionStatus::kFalse, Reason::kResumed, "spec.runPolicy.suspend is false");
  SetCondition(pass, kPlannedCondition, ConditionStatus::kUnknown, Reason::kResumed, "the job is planned again");
  status.start_time = base::FormatTime(pass.world.now);
  SendPlanAgain(pass);
  pass.Event(Reason::kResumed, "the job starts again from its last checkpoint");
}

bool IsPastDeadline(Pass& pass, const TrainingJob& job) {
  const auto& limit = job.run_policy.active_deadline_seconds;
  if (!limit) return false;
  const double active = SecondsSince(pass.report.start_time, pass.world.now);
  const double left = static_cast<double>(*limit) - active;
  if (left > 0) pass.RequeueAfter(base::FromSeconds(left));
  return left <= 0;
}

absl::Status Finish(Pass& pass, const TrainingJob& job, bool complete, Reason reason, const std::string& message) {
  JobStatus& status = pass.report;
  if (status.finished()) return absl::OkStatus();
  SetCondition(pass, complete ? kCompleteCondition : kFailedCondition, ConditionStatus::kTrue, reason, message);
  // One sentence once: the message stands in one condition, and in the Event.
  const std::string over =
      fmt::format("The job is over: see the condition {}.", complete ? kCompleteCondition : kFailedCondition);
  SetCondition(pass, kRunningCondition, ConditionStatus::kFalse, reason, over);
  SetCondition(pass, kPodsReadyCondition, ConditionStatus::kFalse, reason, over);
  status.conditions.Remove(kRescalingCondition);
  status.conditions.Remove(kRestartingCondition);
  status.completion_time = base::FormatTime(pass.world.now);
  if (complete && status.observed) {
    status.observed->progress_percent = 100;
    status.observed->estimated_remaining_seconds = 0;
  }
  if (complete) {
    pass.Event("Completed", fmt::format("{}: {}", ToString(reason), message));
  } else {
    pass.Warning("Failed", fmt::format("{}: {}", ToString(reason), message));
  }
  // Before anything is cleaned up, so that the outcome cannot be lost.
  MEDLEY_RETURN_IF_ERROR(WriteStatus(pass));
  return CleanUpFinished(pass, job.run_policy);
}

namespace {

// The coordinator reports the end of the training before it ends itself. Its pod then stays, with its log; `medley
// download` takes from it what a pod needs that reads the job's volume.
WhichPods PodsToClean(Pass& pass, const RunPolicy& policy) {
  if (policy.clean_pod_policy == CleanPodPolicy::kAll) return WhichPods::kAll;
  const JobStatus& status = pass.report;
  if (!status.conditions.IsTrue(kCompleteCondition)) return WhichPods::kRunning;
  const base::nanoseconds left =
      kCoordinatorEnds - base::FromSeconds(SecondsSince(status.completion_time, pass.world.now));
  if (left <= base::nanoseconds(0)) return WhichPods::kRunning;
  const bool ends = std::any_of(pass.world.pods.begin(), pass.world.pods.end(), [](const auto& pod) {
    return pod.second->label(kRoleLabel) == ToString(Role::kCoordinator) && !kube::HasEnded(*pod.second);
  });
  if (ends) pass.RequeueAfter(left);
  return WhichPods::kRunningMembers;
}

}  // namespace

absl::Status CleanUpFinished(Pass& pass, const RunPolicy& policy) {
  JobStatus& status = pass.report;
  pass.Publish(Disconnect{});
  MEDLEY_RETURN_IF_ERROR(ReleaseUnits(pass));
  if (policy.clean_pod_policy != CleanPodPolicy::kNone) {
    MEDLEY_RETURN_IF_ERROR(DeletePodsOf(pass, PodsToClean(pass, policy)));
  }
  status.replicas = 0;
  // No member can exist any more: the job can be deleted without an operator. Pods that have ended go with their owner.
  const bool ended = std::all_of(pass.world.pods.begin(), pass.world.pods.end(),
                                 [](const auto& pod) { return kube::HasEnded(*pod.second); });
  if (ended && pass.world.pods_are_current) MEDLEY_RETURN_IF_ERROR(RemoveFinalizer(pass));
  const auto& time_to_live = policy.ttl_seconds_after_finished;
  if (!time_to_live || pass.object.deleting()) return absl::OkStatus();
  const double left = static_cast<double>(*time_to_live) - SecondsSince(status.completion_time, pass.world.now);
  if (left > 0) {
    pass.RequeueAfter(base::FromSeconds(left));
    return absl::OkStatus();
  }
  MEDLEY_ASSIGN_OR_RETURN(const absl::Status deleted,
                          pass.Ask(DeleteObject{TrainingJobs(), pass.object.key(), pass.object.uid(), "Background"}));
  return deleted.ok() || kube::IsNotFound(deleted) ? absl::OkStatus()
                                                   : base::Annotate(deleted, "delete the finished job");
}

absl::Status Finalize(Pass& pass) {
  pass.Publish(Disconnect{});
  MEDLEY_RETURN_IF_ERROR(ReleaseUnits(pass));
  if (!HasFinalizer(pass.object)) return absl::OkStatus();
  MEDLEY_RETURN_IF_ERROR(DeletePodsOf(pass, WhichPods::kAll));
  // A kubelet that does not answer never confirms a deletion. The pod's owner is then deleted before it.
  const auto is_deleted = [&](const auto& pod) { return pod.second->deleting() && IsLost(pass, *pod.second); };
  if (std::all_of(pass.world.pods.begin(), pass.world.pods.end(), is_deleted)) return RemoveFinalizer(pass);
  pass.RequeueAfter(kDeletionRetry);
  return absl::OkStatus();
}

}  // namespace medley::ops::lifecycle
