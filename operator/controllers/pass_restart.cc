// Survival: a coordinator that is lost, restarted in place or at its end, and jobs that fail.
#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/names.h"
#include "operator/controllers/job_pass.h"
#include "operator/records/profile_store.h"

namespace medley::ops {
namespace {

constexpr int kPermanentExit = 2;  // exit code of a coordinator that a restart will not help

int ExitCode(const kube::Object& pod, const char* state) {
  const kube::Json& code = pod.At(std::string("/status/containerStatuses/0/") + state + "/terminated/exitCode");
  return code.is_number_integer() ? code.get<int>() : -1;
}

int RestartCount(const kube::Object& pod) {
  const kube::Json& count = pod.At("/status/containerStatuses/0/restartCount");
  return count.is_number_integer() ? count.get<int>() : 0;
}

}  // namespace

// `over`: nothing more is to be done in this pass.
absl::Status JobPass::CheckCoordinator(bool* over) {
  const kube::ObjectPtr pod = Pod(CoordinatorName(job_->name()));
  if (observed_ == nullptr) {
    if (const auto link = deps_.links.Find(job_->key())) observed_ = link->latest();
  }
  MEDLEY_RETURN_IF_ERROR(CheckTerm());
  if (observed_ != nullptr && observed_->phase == JobPhase::kComplete) {
    *over = true;
    Observe();
    return Finish(true, "TrainingComplete",
                  fmt::format("{} samples trained in {} steps", observed_->samples_done, observed_->step));
  }
  if (observed_ != nullptr && observed_->phase == JobPhase::kFailed) {
    *over = true;
    Observe();
    const std::string why = observed_->message.empty() ? "the coordinator gave no reason" : observed_->message;
    if (!observed_->retryable) return Finish(false, "TrainingFailed", why);
    return Restart("TrainingFailed", why);
  }
  if (pod == nullptr) {
    if (record_->coordinator_uid.empty()) return absl::OkStatus();  // not made yet
    *over = true;
    return Restart("CoordinatorLost", "the coordinator's pod is gone");
  }
  if (Going(*pod)) return absl::OkStatus();
  const std::string phase = pod->String("/status/phase");
  if (phase == "Succeeded" || phase == "Failed") {
    *over = true;
    return CoordinatorEnded(*pod, over);
  }
  const int restarts = RestartCount(*pod);
  if (pod->uid() != record_->coordinator_uid || restarts <= record_->coordinator_restarts) return absl::OkStatus();
  if (ExitCode(*pod, "lastState") == kPermanentExit) {
    *over = true;
    return Finish(false, "TrainingFailed", "the coordinator failed for good: " + LastLine(LogOf(*pod)));
  }
  const int more = restarts - record_->coordinator_restarts;
  PlanRecord record = *record_;
  record.coordinator_restarts = restarts;
  MEDLEY_RETURN_IF_ERROR(SaveRecord(record));
  return CountRestarts(more, "the coordinator was restarted in place", over);
}

absl::Status JobPass::CoordinatorEnded(const kube::Object& pod, bool* over) {
  *over = true;
  if (pod.String("/status/phase") == "Succeeded") {
    // It leaves with 0 only when all is trained (or was suspended, which is not asked for now).
    return Finish(true, "TrainingComplete", "the coordinator ended: all samples are trained");
  }
  const std::string why = LastLine(LogOf(pod));
  if (ExitCode(pod, "state") == kPermanentExit) return Finish(false, "TrainingFailed", why);
  return Restart("CoordinatorFailed", why.empty() ? "the coordinator's pod failed" : why);
}

absl::Status JobPass::CountRestarts(int count, const std::string& message, bool* failed) {
  status_.restarts += count;
  for (int i = 0; i < count; ++i) deps_.metrics.CountRestart();
  const int limit = job_->run_policy.backoff_limit;
  if (status_.restarts > limit) {
    *failed = true;
    return Finish(
        false, "BackoffLimitExceeded",
        fmt::format("{} restarts, spec.runPolicy.backoffLimit allows {}; last: {}", status_.restarts, limit, message));
  }
  SetCondition(kRestartingCondition, ConditionStatus::kTrue, "CoordinatorRestarted", message);
  Event(EventRecorder::Type::kWarning, "Restarting",
        fmt::format("restart {} of at most {}: {}", status_.restarts, limit, message));
  return absl::OkStatus();
}

// Everything anew from the last checkpoint: pods go, and come back under the same plan.
absl::Status JobPass::Restart(const std::string& reason, const std::string& message) {
  bool failed = false;
  MEDLEY_RETURN_IF_ERROR(CountRestarts(1, message, &failed));
  if (failed) return absl::OkStatus();
  SetCondition(kRestartingCondition, ConditionStatus::kTrue, reason, message);
  SetCondition(kRunningCondition, ConditionStatus::kFalse, reason, message);
  PlanRecord record = *record_;
  record.coordinator_uid.clear();
  record.coordinator_restarts = 0;
  MEDLEY_RETURN_IF_ERROR(SaveRecord(record));
  ForgetRun();
  // Written before the pods go, so that a restart is never counted twice.
  memory_.status = status_;
  MEDLEY_RETURN_IF_ERROR(WriteStatus());
  Again(base::seconds(1));
  return DeletePods(false);
}

void JobPass::ForgetRun() {
  deps_.links.Drop(object_.key());
  link_.reset();
  observed_.reset();
  memory_.applied_to.clear();
  memory_.applied_generation = -1;
}

}  // namespace medley::ops
