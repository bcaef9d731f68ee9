#include "operator/lifecycle/members.h"

#include <algorithm>

#include "common/base/status.h"
#include "operator/api/cause.h"
#include "operator/api/resources.h"
#include "operator/builders/pod_group.h"
#include "operator/builders/pods.h"
#include "operator/lifecycle/disruption.h"
#include "operator/lifecycle/finishing.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/pod_state.h"
#include "operator/lifecycle/pods.h"
#include "operator/lifecycle/succession.h"

namespace medley::ops::lifecycle {
namespace {

// A member that was released exits with 0 a moment before the coordinator's last observation arrives.
constexpr base::nanoseconds kReleasedPatience = base::seconds(3);
constexpr base::nanoseconds kStaleCacheRetry = base::milliseconds(200);

// False: what its log says of it is not known yet.
absl::StatusOr<bool> CountFailure(Pass& pass, const kube::Object& pod) {
  MembersState& state = pass.Own(&Memory::members);
  if (state.failures[pod.key().name].last_uid == pod.uid()) return true;
  const bool released = WorkerHasSucceeded(pod);
  const int64_t samples = pass.observed != nullptr ? pass.observed->samples_done : 0;
  if (WasDisrupted(pod)) {  // its log is on a node that may not answer
    if (samples > state.samples_at_failure) state.failures.clear();
    PodFailures& lost = state.failures[pod.key().name];
    lost.last_uid = pod.uid();
    // A node may evict every pod that is put on it.
    if (++lost.disruptions > 1) {
      lost.retry_at = pass.world.steady + base::seconds(BackoffSeconds(lost.disruptions - 1));
    }
    state.samples_at_failure = std::max(samples, state.samples_at_failure);
    pass.Warning("MemberDisrupted", fmt::format("pod {} was lost through no fault of its own ({}) and is replaced",
                                                pod.key().name, DisruptionOf(pod)));
    return true;
  }
  std::optional<std::string> how;
  if (!released) {
    MEDLEY_ASSIGN_OR_RETURN(how, HowItEnded(pass, pod));
    if (!how) return false;
    pass.Warning("MemberFailed", fmt::format("pod {} {} and is replaced", pod.key().name, *how));
  }
  if (samples > state.samples_at_failure) {
    state.failures.clear();
    state.samples_at_failure = samples;
  }
  PodFailures& failures = state.failures[pod.key().name];
  failures.last_uid = pod.uid();
  failures.count += 1;
  if (how) failures.how = *how;
  base::nanoseconds delay = failures.count == 1 ? base::seconds(0) : base::seconds(BackoffSeconds(failures.count - 1));
  if (released) delay = kReleasedPatience;
  failures.retry_at = pass.world.steady + delay;
  return true;
}

// `deletions`: pods to be deleted, so that a later pass creates their replacement.
absl::Status ReplaceMember(Pass& pass, const TrainingJob& job, const kube::ObjectPtr& pod,
                           std::vector<kube::ObjectPtr>& deletions) {
  MEDLEY_ASSIGN_OR_RETURN(const bool counted, CountFailure(pass, *pod));
  if (!counted) return absl::OkStatus();
  const PodFailures& failures = pass.memory.members.failures.at(pod->key().name);
  if (failures.count > job.run_policy.backoff_limit + 1) {
    return Finish(pass, job, false, Reason::kBackoffLimitExceeded,
                  CauseFirst(fmt::format("pod {} {}", pod->key().name, failures.how.empty() ? "failed" : failures.how),
                             fmt::format("In all, pod {} failed {} times and the job did not advance; "
                                         "spec.runPolicy.backoffLimit is {}",
                                         pod->key().name, failures.count, job.run_policy.backoff_limit)));
  }
  if (failures.retry_at > pass.world.steady) {
    pass.RequeueAfter(failures.retry_at - pass.world.steady);
    if (WorkerHasSucceeded(*pod)) return absl::OkStatus();
  }
  deletions.push_back(pod);
  return absl::OkStatus();
}

// Adds the member's pod to `missing`, unless its pool does not exist any more.
void BuildMember(Pass& pass, const TrainingJob& job, const MemberSlot& slot, const std::vector<PoolView>& pools,
                 std::vector<kube::Object>& missing) {
  const auto view = std::find_if(pools.begin(), pools.end(),
                                 [&](const PoolView& candidate) { return candidate.pool.name == slot.pool; });
  if (view == pools.end() || !view->pool.Allows(job.key().ns)) return;  // Replan finds another place for it
  kube::Object pod = MemberPod(job, slot, view->pool, pass.options.worker, pass.coordinator,
                               pass.memory.stored_plan.record->plan.generation);
  if (CanTakeOver(job, *pass.memory.stored_plan.record)) {
    pod.SetAnnotation(kCoordinatorTermAnnotation, std::to_string(pass.memory.stored_plan.record->coordinator_term));
  }
  if (const auto kind = pass.memory.objects.joined) JoinPodGroup(job, *kind, pod);
  PreferOtherNodes(NodesOfSlowTrainers(pass), pod);
  missing.push_back(std::move(pod));
}

bool MustWait(Pass& pass, const std::string& member) {
  const auto failed = pass.memory.members.failures.find(member);
  if (failed == pass.memory.members.failures.end() || failed->second.retry_at <= pass.world.steady) return false;
  pass.RequeueAfter(failed->second.retry_at - pass.world.steady);
  return true;
}

absl::Status CreateMembers(Pass& pass, const TrainingJob& job, const std::vector<MemberSlot>& slots) {
  if (slots.empty()) return absl::OkStatus();
  if (!pass.world.pods_are_current) {  // some of them may exist
    pass.RequeueAfter(kStaleCacheRetry);
    return absl::OkStatus();
  }
  MEDLEY_ASSIGN_OR_RETURN(const PoolsView all, pass.Ask(ReadPools{{}, false, {}}));
  std::vector<kube::Object> missing;
  for (const MemberSlot& slot : slots) BuildMember(pass, job, slot, all.pools, missing);
  return missing.empty() ? absl::OkStatus() : CreatePodsOf(pass, std::move(missing), NodeChoice::kAvoidNoticed);
}

// An evaluation between two steps is not the end: the job needs its members afterwards.
bool IsEnding(const Observation& seen) {
  const bool trained = seen.samples_done == seen.samples_total;
  return seen.phase == JobPhase::kComplete || (seen.phase == JobPhase::kEvaluating && trained);
}

}  // namespace

absl::Status EnsureMembers(Pass& pass, const TrainingJob& job) {
  const bool ending = pass.observed != nullptr && IsEnding(*pass.observed);
  std::vector<MemberSlot> missing;
  std::vector<kube::ObjectPtr> deletions;
  const std::vector<MemberSlot> slots = pass.memory.stored_plan.record->slots;
  const auto lost = std::count_if(slots.begin(), slots.end(), [&](const MemberSlot& slot) {
    return pass.Pod(slot.member) == nullptr && IsNameLost(pass, slot.member);
  });
  if (lost > 0 && !ending) {
    return Relocate(pass, job, ReasonOf(Notice::Kind::kLost), static_cast<size_t>(lost), StayingSlots(pass)).status();
  }
  for (const MemberSlot& slot : slots) {
    const kube::ObjectPtr pod = pass.Pod(slot.member);
    if (pod == nullptr) {
      if (!ending && !MustWait(pass, slot.member)) missing.push_back(slot);
    } else if (pass.IsTerminating(*pod) || (ending && WorkerHasEnded(*pod))) {
      continue;
    } else if (WorkerHasEnded(*pod)) {
      MEDLEY_RETURN_IF_ERROR(ReplaceMember(pass, job, pod, deletions));
      if (pass.report.finished()) return absl::OkStatus();
    } else if (!Follows(pass, *pod)) {
      deletions.push_back(pod);  // it would call the address of an earlier coordinator without end
    }
  }
  MEDLEY_RETURN_IF_ERROR(DeleteSome(pass, deletions));
  return CreateMembers(pass, job, missing);
}

}  // namespace medley::ops::lifecycle
