#include "operator/lifecycle/lost_token.h"

#include <algorithm>

#include "common/base/status.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/builders/credentials.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/pod_state.h"
#include "operator/lifecycle/restarts.h"

namespace medley::ops::lifecycle {
namespace {

// The first member of the slots that does not run; empty: all run.
std::string MissingMember(const Pass& pass, const std::vector<MemberSlot>& slots) {
  const auto missing = std::find_if(slots.begin(), slots.end(), [&](const MemberSlot& slot) {
    const kube::ObjectPtr pod = pass.Pod(slot.member);
    return pod == nullptr || pass.IsTerminating(*pod) || WorkerHasEnded(*pod);
  });
  return missing == slots.end() ? "" : missing->member;
}

// One of the stored plans is in force; which one, only the coordinator knows.
std::string MissingMember(const Pass& pass) {
  const PlanRecord& record = *pass.memory.stored_plan.record;
  std::string missing = MissingMember(pass, record.slots);
  const bool fallback_runs = record.fallback != nullptr && MissingMember(pass, record.fallback->slots).empty();
  return fallback_runs ? "" : missing;
}

// The pod that leads the job.
std::string CoordinatorPodOf(const Pass& pass, const TrainingJob& job) {
  const std::optional<PlanRecord>& record = pass.memory.stored_plan.record;
  return record ? record->CoordinatorPodName(job.name()) : CoordinatorName(job.name());
}

}  // namespace

bool HasLostToken(const Pass& pass, const TrainingJob& job) {
  const kube::ObjectPtr pod = pass.Pod(CoordinatorPodOf(pass, job));
  if (pod == nullptr || pass.IsTerminating(*pod) || pass.memory.objects.credentials.empty()) return false;
  // An earlier operator made random credentials, which this one may have read, and another fingerprint of them.
  if (pass.memory.objects.secret == EarlierTokenSecretName(job.name())) return false;
  return pod->annotation(kTokenAnnotation) != FingerprintOf(pass.memory.objects.credentials);
}

absl::Status TrainWithLostToken(Pass& pass, const TrainingJob& job) {
  LostTokenState& state = pass.Own(&Memory::lost_token);
  const kube::Object& coordinator = *pass.Pod(CoordinatorPodOf(pass, job));
  if (state.coordinator_uid != coordinator.uid()) {
    state = {coordinator.uid(), RestartCount(coordinator)};
    pass.Warning(
        "TokenLost",
        fmt::format("The job's pods have a token that this operator cannot derive or read: its key was replaced, or an "
                    "earlier operator has made it (chart: rbac.earlierSecrets). So the operator cannot talk to the "
                    "pods. They train on, without replanning. When one of them is lost, all are replaced, "
                    "and the job resumes from its last checkpoint; to do so now, delete pod {}.",
                    coordinator.key().name));
  }
  pass.RequeueAfter(pass.options.recheck);
  const std::string missing = MissingMember(pass);
  const bool restarted = RestartCount(coordinator) > state.restarts;
  if (missing.empty() && !restarted) return absl::OkStatus();
  const std::string what = restarted ? "the coordinator's container was restarted" : "member " + missing + " was lost";
  return RestartFromCheckpoint(pass, job,
                               what + ", and new processes of the job have another token than the running ones");
}

}  // namespace medley::ops::lifecycle
