// Running: the pods of the plan exist, the coordinator knows the plan, and what is not in it goes
// once it is in force.
#include <algorithm>
#include <set>

#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/resources.h"
#include "operator/builders/pods.h"
#include "operator/controllers/job_pass.h"
#include "operator/controllers/pod_state.h"
#include "operator/records/profile_store.h"

namespace medley::ops {
namespace {

constexpr base::nanoseconds kApplyAgain = base::seconds(3);
// A member that was released exits with 0 a moment before the coordinator's last word arrives.
constexpr base::nanoseconds kReleasedPatience = base::seconds(3);

constexpr base::nanoseconds kQuotaAgain = base::seconds(5);
constexpr base::nanoseconds kCacheAgain = base::milliseconds(200);

// Of ResourceQuota's admission: "exceeded quota: q, requested: ...", "failed quota: q: must specify".
bool IsQuotaRefusal(const absl::Status& status) {
  const std::string why = base::Message(status);
  return status.code() == absl::StatusCode::kPermissionDenied &&
         (why.find("exceeded quota") != std::string::npos || why.find("failed quota") != std::string::npos);
}

}  // namespace

absl::Status JobPass::RunPlan() {
  bool over = false;
  MEDLEY_RETURN_IF_ERROR(CheckCoordinator(&over));
  if (over) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const std::string coordinator, EnsureCoordinator());
  if (!coordinator.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string token, Token());
    link_ = deps_.links.For(job_->key(), coordinator, token);
    observed_ = link_->latest();  // null before the first
    MEDLEY_RETURN_IF_ERROR(CheckTerm());
    if (observed_ != nullptr) Observe();
    MEDLEY_RETURN_IF_ERROR(CheckCoordinator(&over));
    if (over) return absl::OkStatus();
    // Make before break: pods of the new plan first, the plan at once (the coordinator waits for
    // its members), and the pods of the old plan only when the new one is in force.
    MEDLEY_RETURN_IF_ERROR(EnsurePodGroup());
    MEDLEY_RETURN_IF_ERROR(EnsureMembers(coordinator));
    MEDLEY_RETURN_IF_ERROR(ApplyPlan());
    if (InForce()) MEDLEY_RETURN_IF_ERROR(EnsureBudget());
    DrainLeaving();
  }
  MEDLEY_RETURN_IF_ERROR(DeleteLeftovers());
  CheckPodsReady();
  FillPlanStatus();
  TellScheduler();
  return spec_ok_ ? Replan() : absl::OkStatus();
}

absl::StatusOr<std::string> JobPass::EnsureCoordinator() {
  const kube::ObjectPtr pod = Pod(CoordinatorName(job_->name()));
  if (pod == nullptr && !record_->coordinator_uid.empty()) {
    Again(base::nanoseconds(1));  // lost within this pass: the next one counts it
    return std::string();
  }
  if (pod == nullptr) {
    MEDLEY_RETURN_IF_ERROR(CreatePod(CoordinatorPod(*job_, deps_.options.worker)));
    return std::string();
  }
  const std::string ip = pod->String("/status/podIP");
  if (Going(*pod) || HasEnded(*pod) || ip.empty()) return std::string();
  if (record_->coordinator_uid != pod->uid()) {
    PlanRecord record = *record_;
    record.coordinator_uid = pod->uid();
    record.coordinator_restarts = 0;
    MEDLEY_RETURN_IF_ERROR(SaveRecord(record));
  }
  return ip + ":" + std::to_string(deps_.options.worker.listen_port);
}

absl::Status JobPass::CreatePod(kube::Object pod) {
  pod.SetAnnotation(kLeaderTermAnnotation, std::to_string(deps_.leader_term()));
  deps_.expectations.ExpectCreations(object_.key(), 1);
  const auto made = deps_.client.Create(kube::resources::Pods(), pod);
  if (!made.ok()) deps_.expectations.CreationObserved(object_.key());
  memory_.refused.erase(pod.key().name);
  if (made.ok()) {
    deps_.metrics.CountCreatedPods(1);
    return absl::OkStatus();
  }
  if (kube::IsAlreadyExists(made.status())) return FoundInstead(pod);
  if (made.status().code() == absl::StatusCode::kPermissionDenied ||
      made.status().code() == absl::StatusCode::kInvalidArgument) {
    Event(EventRecorder::Type::kWarning, "FailedCreatePod",
          "pod " + pod.key().name + ": " + base::Message(made.status()));
  }
  // The rest of the job goes on; quotas are counted late, so what is free now may be free soon.
  if (IsQuotaRefusal(made.status())) {
    memory_.refused.insert(pod.key().name);
    Again(kQuotaAgain);
    return absl::OkStatus();
  }
  return base::Annotate(made.status(), "create pod " + pod.key().ToString());
}

// Names are deterministic: one that is there already is this job's, made by an earlier pass or by
// another leader, and the cache is behind; or it is going; or it is a stranger's.
absl::Status JobPass::FoundInstead(const kube::Object& pod) {
  Again(base::seconds(1));
  const auto there = deps_.client.Get(kube::resources::Pods(), pod.key());
  if (!there.ok() || there->deleting()) return absl::OkStatus();  // gone, or going: the next pass makes it
  const auto owner = there->controller();
  if (owner && owner->uid == object_.uid()) return absl::OkStatus();
  const std::string whose = owner ? owner->kind + " " + owner->name : "nobody";
  Event(EventRecorder::Type::kWarning, "FailedCreatePod",
        fmt::format("pod {} is there already and belongs to {}", pod.key().name, whose));
  return base::AlreadyExists("create pod {}: one of this name belongs to {}", pod.key().ToString(), whose);
}

absl::Status JobPass::DeletePod(const kube::Object& pod) {
  if (Going(pod)) return absl::OkStatus();
  const absl::Status gone = deps_.client.Delete(kube::resources::Pods(), pod.key(), {.uid = pod.uid()});
  // A conflict: another pod has the name now.
  if (gone.ok() || kube::IsNotFound(gone) || kube::IsConflict(gone)) {
    memory_.deleted.insert(pod.uid());
    return absl::OkStatus();
  }
  return base::Annotate(gone, "delete pod " + pod.key().ToString());
}

bool JobPass::Going(const kube::Object& pod) const { return pod.deleting() || memory_.deleted.contains(pod.uid()); }

absl::Status JobPass::EnsureMembers(const std::string& coordinator) {
  const bool ending =
      observed_ != nullptr && (observed_->phase == JobPhase::kEvaluating || observed_->phase == JobPhase::kComplete);
  std::vector<kube::Object> missing;
  for (const MemberSlot& slot : record_->slots) {
    const kube::ObjectPtr pod = Pod(slot.member);
    if (pod != nullptr) {
      if (Going(*pod) || (ending && HasEnded(*pod))) continue;
      // Made for a coordinator that is gone: it would call a dead address for ever.
      if (!HasEnded(*pod) && CoordinatorOf(*pod) != coordinator) MEDLEY_RETURN_IF_ERROR(DeletePod(*pod));
      if (HasEnded(*pod)) MEDLEY_RETURN_IF_ERROR(ReplaceMember(*pod));
      continue;
    }
    if (ending) continue;
    const auto failed = memory_.failures.find(slot.member);
    if (failed != memory_.failures.end() && failed->second.retry_at > steady_) {
      Again(failed->second.retry_at - steady_);
      continue;
    }
    const kube::ObjectPtr object = deps_.stores.pools.Get({"", slot.pool});
    if (object == nullptr) continue;  // Replan finds another place for it
    MEDLEY_ASSIGN_OR_RETURN(const ResourcePool pool, ResourcePool::FromObject(*object));
    kube::Object made = MemberPod(*job_, slot, pool, deps_.options.worker, coordinator, record_->plan.generation);
    if (memory_.pod_group) JoinPodGroup(*job_, *memory_.pod_group, made);
    // A pool that tolerates everything would be put where it has just left.
    KeepOff(deps_.capacity.NodesToAvoid(deps_.capacity.Demand(made)), made);
    missing.push_back(std::move(made));
  }
  return CreateMembers(missing);
}

absl::Status JobPass::CreateMembers(const std::vector<kube::Object>& pods) {
  if (pods.empty()) return absl::OkStatus();
  if (!deps_.expectations.Satisfied(object_.key())) {  // some of them may be there already
    Again(kCacheAgain);
    return absl::OkStatus();
  }
  const auto create = [&](int i) -> absl::Status {
    MEDLEY_RETURN_IF_ERROR(CreatePod(pods[i]));
    return memory_.refused.contains(pods[i].key().name) ? base::ResourceExhausted("a quota is full") : absl::OkStatus();
  };
  absl::Status status = SlowStart(static_cast<int>(pods.size()), create).status;
  return absl::IsResourceExhausted(status) ? absl::OkStatus() : status;
}

// "was killed by signal 9", "ran out of memory", or "failed with exit code 2: last line of its
// log".
std::string JobPass::HowItEnded(const kube::Object& pod) {
  const kube::Object state(pod.At("/status/containerStatuses/0/state/terminated"));
  if (state.String("/reason") == "OOMKilled") return "ran out of memory";
  const kube::Json& signal = state.At("/signal");
  if (signal.is_number_integer() && signal.get<int>() != 0)
    return fmt::format("was killed by signal {}", signal.get<int>());
  const kube::Json& code = state.At("/exitCode");
  const int exit = code.is_number_integer() ? code.get<int>() : -1;
  // A kubelet says it as a shell does: 128 and the signal.
  if (exit > 128 && exit <= 128 + 64) return fmt::format("was killed by signal {}", exit - 128);
  return fmt::format("failed with exit code {}: {}", exit, LastLine(LogOf(pod)));
}

absl::Status JobPass::ReplaceMember(const kube::Object& pod) {
  JobMemory::Failures& failures = memory_.failures[pod.key().name];
  const bool released = pod.String("/status/phase") == "Succeeded";
  if (failures.last_uid != pod.uid()) {
    const int64_t samples = observed_ != nullptr ? observed_->samples_done : 0;
    if (samples > memory_.samples_at_failure) {
      memory_.failures.clear();  // the job advances: earlier failures were no loop
      memory_.samples_at_failure = samples;
    }
    JobMemory::Failures& fresh = memory_.failures[pod.key().name];
    fresh.last_uid = pod.uid();
    fresh.count += 1;
    fresh.retry_at =
        steady_ + (released ? kReleasedPatience
                   : fresh.count == 1
                       ? base::nanoseconds(0)
                       : base::nanoseconds(base::seconds(std::min(60, 1 << std::min(6, fresh.count - 1)))));
    if (!released) {
      Event(EventRecorder::Type::kWarning, "MemberFailed",
            fmt::format("pod {} {} and is replaced", pod.key().name, HowItEnded(pod)));
    }
  }
  const JobMemory::Failures& now = memory_.failures[pod.key().name];
  if (now.count > job_->run_policy.backoff_limit + 1) {
    return Finish(false, "BackoffLimitExceeded",
                  fmt::format("pod {} failed {} times and the job did not advance; spec.runPolicy.backoffLimit is {}",
                              pod.key().name, now.count, job_->run_policy.backoff_limit));
  }
  if (now.retry_at > steady_) {
    Again(now.retry_at - steady_);
    if (released) return absl::OkStatus();
  }
  return DeletePod(pod);
}

bool JobPass::InForce() const {
  return observed_ != nullptr && observed_->generation >= record_->plan.generation && observed_->next_generation == 0;
}

absl::Status JobPass::ApplyPlan() {
  const int64_t generation = record_->plan.generation;
  const bool known = observed_ != nullptr &&
                     (observed_->generation >= generation || observed_->next_generation >= generation) &&
                     observed_->generation > 0;
  const bool applied = memory_.applied_to == link_->address() && memory_.applied_generation == generation;
  if (applied && (known || steady_ - memory_.applied_at < kApplyAgain)) {
    if (!known) Again(kApplyAgain);
    return absl::OkStatus();
  }
  if (known && memory_.applied_generation == 0) {  // an operator that started anew finds it done
    memory_.applied_to = link_->address();
    memory_.applied_generation = generation;
    return absl::OkStatus();
  }
  const auto answer = link_->ApplyPlan(*record_, deps_.leader_term(), stop_);
  MEDLEY_RETURN_IF_ERROR(Deposed(answer.status(), "apply the plan"));
  if (answer.status().code() == absl::StatusCode::kFailedPrecondition && observed_ != nullptr &&
      observed_->generation >= generation) {
    // The coordinator recovered into a newer generation meanwhile: the plan stands, under a newer
    // number.
    PlanRecord record = *record_;
    record.plan.generation = std::max(observed_->generation, observed_->next_generation) + 1;
    MEDLEY_RETURN_IF_ERROR(SaveRecord(record));
    Again(base::nanoseconds(1));
    return absl::OkStatus();
  }
  if (!answer.ok()) {  // it starts, or restarts: the plan is sent again
    log::Debug("plan not taken yet", {{"job", job_->key().ToString()}, {"error", base::ToString(answer.status())}});
    Again(base::seconds(1));
    return absl::OkStatus();
  }
  memory_.applied_to = link_->address();
  memory_.applied_generation = generation;
  memory_.applied_at = steady_;
  Again(kApplyAgain);
  return absl::OkStatus();
}

absl::Status JobPass::DeleteLeftovers() {
  std::set<std::string> wanted;
  for (const MemberSlot& slot : record_->slots) wanted.insert(slot.member);
  for (const kube::ObjectPtr& pod : Pods()) {
    const bool profiler = pod->label(kRoleLabel) == ToString(Role::kProfiler);
    // Of a pool that came while the job runs: it is measured before it is planned with.
    if (profiler && memory_.profilers.contains(pod->key().name)) continue;
    if (!profiler && (!IsMember(*pod) || wanted.contains(pod->key().name))) continue;
    if (profiler || HasEnded(*pod) || InForce()) MEDLEY_RETURN_IF_ERROR(DeletePod(*pod));
  }
  return absl::OkStatus();
}

}  // namespace medley::ops
