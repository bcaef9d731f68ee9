#include "operator/lifecycle/succession.h"

#include <algorithm>

#include "common/base/status.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/builders/pods.h"
#include "operator/lifecycle/disruption.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/planning.h"
#include "operator/lifecycle/pod_state.h"
#include "operator/lifecycle/pods.h"
#include "operator/lifecycle/running.h"

namespace medley::ops::lifecycle {
namespace {

constexpr base::nanoseconds kDeletionOverdue = base::seconds(30);  // after its grace period

int64_t NextTerm(Pass& pass) {
  int64_t& newest = pass.memory.status.current.coordinator_term;
  const std::optional<PlanRecord>& record = pass.memory.planning.record;
  if (record) newest = std::max({newest, record->coordinator_term, record->successor_term});
  return ++newest;
}

bool HandedOver(const kube::Object& pod) {
  return ExitCode(pod) == kSuperseded || ExitCode(pod, "lastState") == kSuperseded;
}

// The successor, or a new coordinator, has the job from now on.
absl::Status Promote(Pass& pass, const TrainingJob& job) {
  PlanRecord record = *pass.memory.planning.record;
  if (record.successor_term > 0) {
    record.coordinator_pod = record.successor_pod;
    record.coordinator_term = record.successor_term;
  } else {
    const bool taken = pass.Pod(record.CoordinatorPodName(job.name())) != nullptr;
    RenewCoordinator(pass, job, record);
    if (taken) record.coordinator_pod = CoordinatorName(job.name(), record.coordinator_term);
  }
  record.successor_pod.clear();
  record.successor_term = 0;
  record.coordinator_uid.clear();
  record.coordinator_restarts = 0;
  MEDLEY_RETURN_IF_ERROR(StorePlan(pass, job, record));
  ForgetCoordinator(pass);
  pass.memory.disruption.drained.clear();  // the new one does not know them
  pass.RequeueAfter(base::nanoseconds(1));
  return absl::OkStatus();
}

absl::Status TakeOver(Pass& pass, const TrainingJob& job, const std::string& message) {
  ++pass.memory.status.current.restarts;
  pass.Publish(CountRestarts{1});
  SetCondition(pass, kRestartingCondition, ConditionStatus::kTrue, "CoordinatorLost", message);
  pass.Warning("Restarting", message + "; another coordinator takes over, and the members keep their state");
  return Promote(pass, job);
}

}  // namespace

bool CanTakeOver(const TrainingJob& job, const PlanRecord& record) {
  return job.checkpoint_volume.has_value() && record.coordinator_term > 0;
}

bool IsLost(Pass& pass, const kube::Object& pod) {
  if (pod.deleting()) {
    const auto due = base::ParseTime(pod.String("/metadata/deletionTimestamp"));
    const base::nanoseconds left = due.ok() ? *due + kDeletionOverdue - pass.world.now : base::nanoseconds(0);
    if (left > base::nanoseconds(0)) pass.RequeueAfter(left);
    return left <= base::nanoseconds(0);
  }
  const auto notice = NoticeFor(pass, pod);
  return notice && notice->kind == Notice::Kind::kLost;
}

bool Follows(const Pass& pass, const kube::Object& member) {
  return CoordinatorOf(member) == pass.coordinator || !member.annotation(kCoordinatorTermAnnotation).empty();
}

void RenewCoordinator(Pass& pass, const TrainingJob& job, PlanRecord& record) {
  record.coordinator_term = NextTerm(pass);
  const kube::ObjectPtr named = pass.Pod(record.CoordinatorPodName(job.name()));
  if (named != nullptr && IsLost(pass, *named)) {
    record.coordinator_pod = CoordinatorName(job.name(), record.coordinator_term);
  }
}

absl::StatusOr<bool> ReplaceCoordinator(Pass& pass, const TrainingJob& job, const kube::ObjectPtr& pod) {
  const PlanRecord& record = *pass.memory.planning.record;
  if (!CanTakeOver(job, record)) return false;
  const kube::ObjectPtr successor = record.successor_term > 0 ? pass.Pod(record.successor_pod) : nullptr;
  if (pod == nullptr) {
    if (record.coordinator_uid.empty()) return false;  // it is about to be created
    if (successor != nullptr && !pass.IsTerminating(*successor) && !WorkerHasEnded(*successor)) {
      // Deleted before this operator saw how it ended.
      pass.Event("CoordinatorMoved", fmt::format("pod {} has left, and {} leads the job",
                                                 record.CoordinatorPodName(job.name()), record.successor_pod));
      MEDLEY_RETURN_IF_ERROR(Promote(pass, job));
      return true;
    }
    MEDLEY_RETURN_IF_ERROR(TakeOver(pass, job, "the coordinator's pod was deleted"));
    return true;
  }
  if (record.successor_term > 0 && HandedOver(*pod)) {
    pass.Event("CoordinatorMoved",
               fmt::format("pod {} has handed the job over to {}", pod->key().name, record.successor_pod));
    MEDLEY_RETURN_IF_ERROR(Promote(pass, job));
    return true;
  }
  if (IsLost(pass, *pod)) {
    MEDLEY_RETURN_IF_ERROR(
        TakeOver(pass, job, fmt::format("the coordinator's node {} does not answer", pod->String("/spec/nodeName"))));
    return true;
  }
  if (!pass.IsTerminating(*pod) && WorkerHasEnded(*pod) && !WorkerHasSucceeded(*pod) && WasDisrupted(*pod) &&
      ExitCode(*pod) != kPermanentFailure) {
    MEDLEY_RETURN_IF_ERROR(TakeOver(pass, job, fmt::format("the coordinator's pod was lost: {}", DisruptionOf(*pod))));
    return true;
  }
  return false;
}

absl::Status EnsureSuccessor(Pass& pass, const TrainingJob& job) {
  if (!CanTakeOver(job, *pass.memory.planning.record)) return absl::OkStatus();
  PlanRecord record = *pass.memory.planning.record;
  const kube::ObjectPtr pod = pass.Pod(record.CoordinatorPodName(job.name()));
  const kube::ObjectPtr successor = record.successor_term > 0 ? pass.Pod(record.successor_pod) : nullptr;
  const bool unusable = successor != nullptr && (pass.IsTerminating(*successor) || WorkerHasEnded(*successor));
  if (record.successor_term == 0 || unusable) {
    if (pod == nullptr || WorkerHasEnded(*pod) || pod->String("/spec/nodeName").empty()) return absl::OkStatus();
    const auto notice = NoticeFor(pass, *pod);
    if (!notice) return absl::OkStatus();
    record.successor_term = NextTerm(pass);
    record.successor_pod = CoordinatorName(job.name(), record.successor_term);
    MEDLEY_RETURN_IF_ERROR(StorePlan(pass, job, record));
    pass.Event(ReasonOf(notice->kind), fmt::format("the coordinator leaves node {} ({}): pod {} takes over",
                                                   pod->String("/spec/nodeName"), notice->sign, record.successor_pod));
  }
  if (pass.Pod(record.successor_pod) != nullptr || !pass.world.pods_are_current) return absl::OkStatus();
  return CreatePodsOf(pass, {CoordinatorPod(job, pass.options.worker, record.successor_pod, record.successor_term)},
                      NodeChoice::kAvoidNoticed);
}

}  // namespace medley::ops::lifecycle
