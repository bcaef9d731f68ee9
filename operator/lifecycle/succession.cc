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
constexpr base::nanoseconds kStaleCacheRetry = base::milliseconds(200);

int64_t NextTerm(Pass& pass) {
  int64_t& newest = pass.report.coordinator_term;
  const std::optional<PlanRecord>& record = pass.memory.stored_plan.record;
  if (record) newest = std::max({newest, record->coordinator_term, record->successor_term});
  pass.Own(&Memory::succession).unused_term = ++newest;
  return newest;
}

// The pod has a process, or will have one.
bool CanLead(Pass& pass, const kube::ObjectPtr& pod) {
  return pod != nullptr && !pass.IsTerminating(*pod) && !WorkerHasEnded(*pod) && !IsLost(pass, *pod);
}

kube::ObjectPtr Successor(const Pass& pass) {
  const PlanRecord& record = *pass.memory.stored_plan.record;
  return record.successor_term > 0 ? pass.Pod(record.successor_pod) : nullptr;
}

// The coordinator has ended since restarts were counted, because another one has a larger term.
bool WasSuperseded(const kube::Object& pod, const PlanRecord& record) {
  const bool is_known = pod.uid() == record.coordinator_uid;
  if (!is_known && pod.deleting()) return false;  // of a coordinator before this one
  if (ExitCode(pod) == kSuperseded) return true;
  const int counted = is_known ? record.coordinator_restarts : 0;
  return ExitCode(pod, "lastState") == kSuperseded && RestartCount(pod) > counted;
}

// The successor, or a new coordinator, has the job from now on.
absl::Status Promote(Pass& pass, const TrainingJob& job) {
  PlanRecord record = *pass.memory.stored_plan.record;
  record.coordinator_uid.clear();
  record.coordinator_restarts = 0;
  if (const kube::ObjectPtr successor = Successor(pass); CanLead(pass, successor)) {
    record.coordinator_pod = record.successor_pod;
    record.coordinator_term = record.successor_term;
    record.coordinator_uid = successor->uid();
    record.coordinator_restarts = RestartCount(*successor);  // those before it led are no faults of the job
  } else {
    const bool taken = pass.Pod(record.CoordinatorPodName(job.name())) != nullptr;
    RenewCoordinator(pass, job, record);
    if (taken) record.coordinator_pod = CoordinatorName(job.name(), record.coordinator_term);
  }
  record.successor_pod.clear();
  record.successor_term = 0;
  MEDLEY_RETURN_IF_ERROR(StorePlan(pass, job, record));
  ForgetCoordinator(pass);
  ForgetDrained(pass);  // the new one does not know them
  pass.RequeueAfter(base::nanoseconds(1));
  return absl::OkStatus();
}

absl::Status TakeOver(Pass& pass, const TrainingJob& job, const std::string& message) {
  ++pass.report.restarts;
  pass.Publish(CountRestarts{1});
  SetCondition(pass, kRestartingCondition, ConditionStatus::kTrue, Reason::kCoordinatorLost, message);
  pass.Warning("Restarting", message + "; another coordinator takes over, and the members keep their state");
  return Promote(pass, job);
}

// `term`: the unused one.
absl::Status CreatePodWithTerm(Pass& pass, const TrainingJob& job, const std::string& name, int64_t term,
                               NodeChoice nodes) {
  pass.Own(&Memory::succession).unused_term = 0;  // also when the answer is an error, the pod may exist
  const absl::Status created = CreatePodsOf(pass, {CoordinatorPod(job, pass.options.worker, name, term)}, nodes);
  const PodsState& state = pass.memory.pods;
  if (state.refused.contains(name) || state.occupied.contains(name)) pass.Own(&Memory::succession).unused_term = term;
  return created;
}

}  // namespace

bool CanTakeOver(const TrainingJob& job, const PlanRecord& record) {
  return job.keeps_checkpoints() && record.coordinator_term > 0;
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
  const std::string name = record.CoordinatorPodName(job.name());
  const kube::ObjectPtr named = pass.Pod(name);
  if (named != nullptr ? IsLost(pass, *named) : IsNameLost(pass, name)) {
    record.coordinator_pod = CoordinatorName(job.name(), record.coordinator_term);
  }
}

absl::StatusOr<bool> ReplaceCoordinator(Pass& pass, const TrainingJob& job, const kube::ObjectPtr& pod) {
  const PlanRecord record = *pass.memory.stored_plan.record;
  if (pod != nullptr && record.coordinator_uid.empty() && IsLost(pass, *pod)) {
    // Nothing has run under this pod, or a restart that was counted has deleted it.
    pass.Warning("CoordinatorMoved",
                 fmt::format("the node {} of pod {} does not answer: the job gets another coordinator",
                             pod->String("/spec/nodeName"), pod->key().name));
    MEDLEY_RETURN_IF_ERROR(Promote(pass, job));
    return true;
  }
  if (!CanTakeOver(job, record)) return false;
  const auto take_over = [&](const std::string& message) -> absl::StatusOr<bool> {
    MEDLEY_RETURN_IF_ERROR(TakeOver(pass, job, message));
    return true;
  };
  const auto move = [&](const std::string& message) -> absl::StatusOr<bool> {
    pass.Event("CoordinatorMoved", message);
    MEDLEY_RETURN_IF_ERROR(Promote(pass, job));
    return true;
  };
  const bool has_successor = CanLead(pass, Successor(pass));
  if (pod == nullptr) {
    if (has_successor) {  // deleted before this operator saw how it ended
      return move(fmt::format("pod {} has left, and {} takes over the job", record.CoordinatorPodName(job.name()),
                              record.successor_pod));
    }
    if (record.coordinator_uid.empty()) return false;  // CreateCoordinator
    return take_over("the coordinator's pod was deleted");
  }
  if (WasSuperseded(*pod, record)) {
    if (has_successor) {
      return move(fmt::format("pod {} has handed the job over to {}", pod->key().name, record.successor_pod));
    }
    if (record.successor_term == 0) return take_over("the coordinator has found one with a larger number");
    return take_over(
        fmt::format("the coordinator has handed the job over to pod {}, which is lost", record.successor_pod));
  }
  if (IsLost(pass, *pod)) {
    return take_over(fmt::format("the coordinator's node {} does not answer", pod->String("/spec/nodeName")));
  }
  if (!pass.IsTerminating(*pod) && WorkerHasEnded(*pod) && !WorkerHasSucceeded(*pod) && WasDisrupted(*pod) &&
      ExitCode(*pod) != kPermanentFailure) {
    return take_over(fmt::format("the coordinator's pod was lost: {}", DisruptionOf(*pod)));
  }
  return false;
}

absl::StatusOr<bool> PromoteSuccessor(Pass& pass, const TrainingJob& job, bool gives_no_answer) {
  const PlanRecord& record = *pass.memory.stored_plan.record;
  if (!CanTakeOver(job, record) || !CanLead(pass, Successor(pass))) return false;
  const kube::ObjectPtr pod = pass.Pod(record.CoordinatorPodName(job.name()));
  if (pod != nullptr && WorkerHasSucceeded(*pod)) return false;  // it was suspended
  const bool has_left = pod == nullptr || WasSuperseded(*pod, record) || WorkerHasEnded(*pod) || IsLost(pass, *pod);
  if (!has_left && !gives_no_answer) return false;
  MEDLEY_RETURN_IF_ERROR(Promote(pass, job));
  return true;
}

bool MayLead(Pass& pass, const TrainingJob& job) {
  const PlanRecord& record = *pass.memory.stored_plan.record;
  return CanTakeOver(job, record) && CanLead(pass, pass.Pod(record.CoordinatorPodName(job.name())));
}

absl::Status CreateCoordinator(Pass& pass, const TrainingJob& job) {
  if (!pass.world.pods_are_current) {  // it may exist
    pass.RequeueAfter(kStaleCacheRetry);
    return absl::OkStatus();
  }
  PlanRecord record = *pass.memory.stored_plan.record;
  const std::string name = record.CoordinatorPodName(job.name());
  if (record.coordinator_term != pass.memory.succession.unused_term || IsNameLost(pass, name)) {
    RenewCoordinator(pass, job, record);
    MEDLEY_RETURN_IF_ERROR(StorePlan(pass, job, record));
  }
  return CreatePodWithTerm(pass, job, record.CoordinatorPodName(job.name()), record.coordinator_term, NodeChoice::kAny);
}

void ForgetUnusedTerm(Pass& pass) { pass.Own(&Memory::succession).unused_term = 0; }

absl::Status EnsureSuccessor(Pass& pass, const TrainingJob& job) {
  if (!CanTakeOver(job, *pass.memory.stored_plan.record)) return absl::OkStatus();
  PlanRecord record = *pass.memory.stored_plan.record;
  const kube::ObjectPtr successor = Successor(pass);
  if (CanLead(pass, successor)) return absl::OkStatus();
  const bool is_new = successor == nullptr && record.successor_term > 0 &&
                      record.successor_term == pass.memory.succession.unused_term &&
                      !IsNameLost(pass, record.successor_pod);
  if (!is_new) {
    const kube::ObjectPtr pod = pass.Pod(record.CoordinatorPodName(job.name()));
    if (pod == nullptr || WorkerHasEnded(*pod) || pod->String("/spec/nodeName").empty()) return absl::OkStatus();
    const auto notice = NoticeFor(pass, *pod);
    if (!notice) return absl::OkStatus();
    if (!pass.world.pods_are_current) {  // one may exist
      pass.RequeueAfter(kStaleCacheRetry);
      return absl::OkStatus();
    }
    record.successor_term = NextTerm(pass);
    record.successor_pod = CoordinatorName(job.name(), record.successor_term);
    MEDLEY_RETURN_IF_ERROR(StorePlan(pass, job, record));
    pass.Event(ReasonOf(notice->kind), fmt::format("the coordinator leaves node {} ({}): pod {} takes over",
                                                   pod->String("/spec/nodeName"), notice->sign, record.successor_pod));
  }
  return CreatePodWithTerm(pass, job, record.successor_pod, record.successor_term, NodeChoice::kAvoidNoticed);
}

}  // namespace medley::ops::lifecycle
