#include "operator/lifecycle/objects.h"

#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/builders/objects.h"
#include "operator/lifecycle/pass.h"

namespace medley::ops::lifecycle {
namespace {

// OK: the object is this job's. Otherwise it belongs to an earlier job of the same name, which is being deleted, or to
// another user, who must be notified.
absl::Status CheckOwned(Pass& pass, const kube::Object& existing) {
  const auto owner = existing.controller();
  if (owner && owner->uid == pass.object.uid()) return absl::OkStatus();
  const std::string what = existing.kind() + " " + existing.key().ToString();
  if (owner && owner->kind == TrainingJobs().kind && owner->name == pass.object.key().name) {
    return base::Unavailable("{} still belongs to an earlier job of this name; waiting until it is deleted", what);
  }
  pass.Warning(
      "NameTaken",
      what + " does not belong to this job, which needs an object of this name: delete it, or rename the job.");
  return base::FailedPrecondition("{} does not belong to this job, which needs an object of this name", what);
}

absl::StatusOr<kube::Object> EnsureOwned(Pass& pass, const kube::Resource& resource, const kube::Object& object,
                                         bool probably_exists = false) {
  MEDLEY_ASSIGN_OR_RETURN(absl::StatusOr<kube::Object> existing,
                          pass.Ask(EnsureObject{resource, object, probably_exists}));
  if (!existing.ok()) {
    return base::Annotate(existing.status(), "create " + resource.kind + " " + object.key().ToString());
  }
  MEDLEY_RETURN_IF_ERROR(CheckOwned(pass, *existing));
  return existing;
}

}  // namespace

absl::StatusOr<std::string> EnsureToken(Pass& pass, const TrainingJob& job) {
  ObjectsState& state = pass.memory.objects;
  if (!state.token.empty()) return state.token;
  const bool planned = pass.memory.planning.record.has_value();
  MEDLEY_ASSIGN_OR_RETURN(const kube::Object secret, EnsureOwned(pass, kube::resources::Secrets(),
                                                                 TokenSecret(job, pass.world.fresh_token), planned));
  state.token = TokenOf(secret);
  if (state.token.empty()) {
    return base::FailedPrecondition("Secret {} holds no token; delete it, and the operator creates it again",
                                    secret.key().ToString());
  }
  return state.token;
}

absl::Status EnsureBaseObjects(Pass& pass, const TrainingJob& job) {
  if (pass.memory.objects.base_objects_made) return absl::OkStatus();
  const WorkerSettings& worker = pass.options.worker;
  MEDLEY_RETURN_IF_ERROR(EnsureToken(pass, job).status());
  MEDLEY_RETURN_IF_ERROR(EnsureOwned(pass, kube::resources::ConfigMaps(), SpecConfigMap(job)).status());
  MEDLEY_RETURN_IF_ERROR(EnsureOwned(pass, kube::resources::Services(), CoordinatorService(job, worker)).status());
  MEDLEY_RETURN_IF_ERROR(EnsureOwned(pass, kube::resources::NetworkPolicies(), JobNetworkPolicy(job, worker)).status());
  pass.memory.objects.base_objects_made = true;
  return absl::OkStatus();
}

absl::Status EnsureBudget(Pass& pass, const TrainingJob& job) {
  const auto members = static_cast<int>(pass.memory.planning.record->slots.size());
  const ObjectsState::Budget wanted{job.run_policy.disruption_budget, members, job.run_policy.max_unavailable};
  if (pass.memory.objects.budget == wanted) return absl::OkStatus();
  const kube::Resource budgets = kube::resources::PodDisruptionBudgets();
  absl::Status done;
  if (wanted.wanted) {
    // The coordinator counts as well.
    MEDLEY_ASSIGN_OR_RETURN(done, pass.Ask(ApplyObject{budgets, DisruptionBudget(job, members + 1)}));
  } else {
    const kube::Key key{job.key().ns, DisruptionBudgetName(job.name())};
    MEDLEY_ASSIGN_OR_RETURN(done, pass.Ask(DeleteObject{budgets, key, std::nullopt, ""}));
    if (kube::IsNotFound(done)) done = absl::OkStatus();
  }
  if (!done.ok()) return base::Annotate(done, "write the PodDisruptionBudget of " + job.key().ToString());
  pass.memory.objects.budget = wanted;
  return absl::OkStatus();
}

absl::Status EnsurePodGroup(Pass& pass, const TrainingJob& job) {
  ObjectsState& state = pass.memory.objects;
  const auto members = static_cast<int>(pass.memory.planning.record->slots.size());
  const ObjectsState::Group wanted{WantedPodGroup(job.run_policy), members};
  if (state.group == wanted) return absl::OkStatus();
  state.joined.reset();
  if (wanted.kind) {
    const kube::Resource groups = PodGroups(*wanted.kind);
    MEDLEY_ASSIGN_OR_RETURN(const absl::Status done,
                            pass.Ask(ApplyObject{groups, PodGroup(job, *wanted.kind, members)}));
    // A cluster without the kind does not know the path; one that forbids the call may not have the kind either.
    if (kube::IsNotFound(done) || done.code() == absl::StatusCode::kPermissionDenied) {
      pass.Warning("PodGroupUnavailable",
                   "spec.runPolicy.schedulingPolicy.podGroup: the operator cannot create a PodGroup of " +
                       groups.ApiVersion() + ", so pods are scheduled one by one: " + base::Message(done));
    } else if (done.ok()) {
      state.joined = wanted.kind;
    } else {
      return base::Annotate(done, "write the PodGroup of " + job.key().ToString());
    }
  }
  state.group = wanted;
  return absl::OkStatus();
}

}  // namespace medley::ops::lifecycle
