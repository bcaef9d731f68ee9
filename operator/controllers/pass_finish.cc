// Ends: suspension, deadline, completion, failure, cleaning up, deletion.
#include <algorithm>

#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/controllers/job_pass.h"

namespace medley::ops {

absl::Status JobPass::Suspend() {
  if (status_.conditions.IsTrue(kSuspendedCondition) && Pods().empty()) return absl::OkStatus();
  const auto link = deps_.links.Find(job_->key());
  if (!status_.conditions.IsTrue(kSuspendedCondition)) {
    std::string what = "nothing was running";
    if (link != nullptr && record_) {
      const auto step =
          link->Suspend("spec.runPolicy.suspend", deps_.options.suspend_timeout, deps_.leader_term(), stop_);
      MEDLEY_RETURN_IF_ERROR(Deposed(step.status(), "suspend"));
      what = step.ok() ? fmt::format("checkpoint at step {}", *step)
                       : "no checkpoint was taken now, the last one counts: " + base::Message(step.status());
    }
    if (link != nullptr) observed_ = link->latest();
    if (observed_ != nullptr) Observe();
    SetCondition(kSuspendedCondition, ConditionStatus::kTrue, "Suspended", what);
    SetCondition(kRunningCondition, ConditionStatus::kFalse, "Suspended", what);
    SetCondition(kPodsReadyCondition, ConditionStatus::kFalse, "Suspended", what);
    status_.conditions.Remove(kRescalingCondition);
    status_.conditions.Remove(kRestartingCondition);
    Event(EventRecorder::Type::kNormal, "Suspended", what);
  }
  status_.start_time.clear();  // as in Kubernetes' own jobs
  status_.replicas = 0;
  ForgetRun();
  // Resuming plans anew: what was best may not be any more.
  if (record_) {
    const kube::Key key{job_->key().ns, PlanConfigMapName(job_->name())};
    const absl::Status gone = deps_.client.Delete(kube::resources::ConfigMaps(), key);
    if (!gone.ok() && !kube::IsNotFound(gone)) return gone;
    record_.reset();
    memory_.record.reset();
    memory_.record_version.clear();
  }
  memory_.considered.reset();
  return DeletePods(false);
}

void JobPass::Resume() {
  if (!status_.conditions.IsTrue(kSuspendedCondition)) return;
  SetCondition(kSuspendedCondition, ConditionStatus::kFalse, "Resumed", "spec.runPolicy.suspend is false");
  SetCondition(kPlannedCondition, ConditionStatus::kUnknown, "Resumed", "the job is planned again");
  status_.start_time = base::FormatTime(now_);
  memory_.applied_generation = -1;
  Event(EventRecorder::Type::kNormal, "Resumed", "the job starts again from its last checkpoint");
}

bool JobPass::DeadlinePassed() {
  const auto& limit = job_->run_policy.active_deadline_seconds;
  if (!limit) return false;
  const double left = static_cast<double>(*limit) - SecondsSince(status_.start_time, now_);
  if (left > 0) Again(base::FromSeconds(left));
  return left <= 0;
}

absl::Status JobPass::Finish(bool complete, const std::string& reason, const std::string& message) {
  if (status_.finished()) return absl::OkStatus();
  SetCondition(complete ? kCompleteCondition : kFailedCondition, ConditionStatus::kTrue, reason, message);
  SetCondition(kRunningCondition, ConditionStatus::kFalse, reason, message);
  SetCondition(kPodsReadyCondition, ConditionStatus::kFalse, reason, message);
  status_.conditions.Remove(kRescalingCondition);
  status_.conditions.Remove(kRestartingCondition);
  status_.completion_time = base::FormatTime(now_);
  if (complete && status_.observed) {
    status_.observed->progress_percent = 100;
    status_.observed->estimated_remaining_seconds = 0;
  }
  Event(complete ? EventRecorder::Type::kNormal : EventRecorder::Type::kWarning, complete ? "Completed" : "Failed",
        reason + ": " + message);
  // The outcome is written before anything is cleaned, so that it cannot be lost.
  memory_.status = status_;
  MEDLEY_RETURN_IF_ERROR(WriteStatus());
  return AfterFinished();
}

absl::Status JobPass::AfterFinished() {
  deps_.links.Drop(object_.key());
  if (job_->run_policy.clean_pod_policy != CleanPodPolicy::kNone) {
    MEDLEY_RETURN_IF_ERROR(DeletePods(job_->run_policy.clean_pod_policy == CleanPodPolicy::kRunning));
  }
  status_.replicas = 0;
  const auto& ttl = job_->run_policy.ttl_seconds_after_finished;
  if (!ttl || object_.deleting()) return absl::OkStatus();
  const double left = static_cast<double>(*ttl) - SecondsSince(status_.completion_time, now_);
  if (left > 0) {
    Again(base::FromSeconds(left));
    return absl::OkStatus();
  }
  const absl::Status gone =
      deps_.client.Delete(TrainingJobs(), object_.key(), {.uid = object_.uid(), .propagation_policy = "Background"});
  return gone.ok() || kube::IsNotFound(gone) ? absl::OkStatus() : base::Annotate(gone, "delete the finished job");
}

absl::Status JobPass::DeletePods(bool only_running) {
  for (const kube::ObjectPtr& pod : Pods()) {
    const std::string phase = pod->String("/status/phase");
    if (only_running && (phase == "Succeeded" || phase == "Failed")) continue;
    MEDLEY_RETURN_IF_ERROR(DeletePod(*pod));
  }
  return absl::OkStatus();
}

absl::Status JobPass::Finalize() {
  deps_.links.Drop(object_.key());
  const kube::Json& finalizers = object_.At("/metadata/finalizers");
  if (!finalizers.is_array() || std::find(finalizers.begin(), finalizers.end(), kFinalizer) == finalizers.end()) {
    return absl::OkStatus();
  }
  MEDLEY_RETURN_IF_ERROR(DeletePods(false));
  if (!Pods().empty()) {
    Again(base::seconds(1));
    return absl::OkStatus();
  }
  kube::Json list = finalizers;
  list.erase(std::find(list.begin(), list.end(), kFinalizer));
  const kube::Json patch = {
      {"metadata", {{"finalizers", std::move(list)}, {"resourceVersion", object_.resource_version()}}}};
  const auto patched = deps_.client.Patch(TrainingJobs(), object_.key(), kube::PatchType::kMerge, patch);
  if (patched.ok() || kube::IsNotFound(patched.status()) || kube::IsConflict(patched.status())) return absl::OkStatus();
  return patched.status();
}

}  // namespace medley::ops
