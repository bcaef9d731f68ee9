#include "operator/lifecycle/objects.h"

#include <algorithm>

#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/builders/credentials.h"
#include "operator/builders/objects.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/pod_state.h"

namespace medley::ops::lifecycle {
namespace {

// Creates the Secret unless it exists. The operator may not read it, so that each look is an attempt to create it. What
// another client has put in its place, the pods refuse (MountCredentials).
absl::Status KeepSecret(Pass& pass, const TrainingJob& job) {
  const kube::Resource secrets = kube::resources::Secrets();
  ObjectsState& state = pass.Own(&Memory::objects);
  KeptObject& kept = state.kept_secret;
  if (pass.world.steady < kept.next) return absl::OkStatus();
  const bool known = !kept.uid.empty();
  const kube::Object secret = TokenSecret(job, state.credentials, state.secret);
  MEDLEY_ASSIGN_OR_RETURN(const absl::StatusOr<kube::Object> made, pass.Ask(CreateObject{secrets, secret}));
  const bool existed = kube::IsAlreadyExists(made.status());
  if (!made.ok() && !existed) {
    if (pass.memory.stored_plan.record) LookLater(pass, kept);
    return base::Annotate(made.status(), "create Secret " + secret.key().ToString());
  }
  LookLater(pass, kept);
  if (!known) kept.uid = "created";  // by this operator or by one before
  if (known && !existed) CountRestore(pass, kept, secrets, secret.key().name, "deleted");
  return absl::OkStatus();
}

// The fingerprint of the credentials with which the job's pods were made: that of the coordinator if it has one.
std::string FingerprintOfPods(const Pass& pass) {
  std::string found;
  for (const auto& [name, pod] : pass.world.pods) {
    if (pass.IsTerminating(*pod) || WorkerHasEnded(*pod)) continue;
    const bool leads = pod->label(kRoleLabel) == ToString(Role::kCoordinator);
    if (leads || found.empty()) found = pod->annotation(kTokenAnnotation);
    if (leads) break;
  }
  return found;
}

// Random credentials that an earlier operator has made, if this one may read them, which the chart allows only while
// such jobs run (rbac.earlierSecrets); empty: it may not, or none exist.
absl::StatusOr<JobCredentials> EarlierCredentials(Pass& pass, const std::string& name) {
  const kube::Key key{pass.object.key().ns, name};
  MEDLEY_ASSIGN_OR_RETURN(const absl::StatusOr<kube::Object> secret,
                          pass.Ask(GetObject{kube::resources::Secrets(), key}));
  if (kube::IsNotFound(secret.status()) || secret.status().code() == absl::StatusCode::kPermissionDenied) {
    return JobCredentials();
  }
  if (!secret.ok()) return base::Annotate(secret.status(), "read Secret " + key.ToString());
  const auto owner = secret->controller();
  return owner && owner->uid == pass.object.uid() ? CredentialsOf(*secret) : JobCredentials();
}

kube::Object SignedSpec(const Pass& pass, const TrainingJob& job) {
  kube::Object map = SpecConfigMap(job);
  pass.options.record_keys.Sign(RecordKind::kSpec, pass.object.uid(), map);
  return map;
}

// Deletes a ConfigMap that the operator has not written, so that a later pass creates it: it is immutable. While the
// spec is invalid, nobody knows what was admitted, so it stays.
absl::Status ReplaceRefusedSpec(Pass& pass, const kube::Object& map, KeptObject& kept) {
  const auto genuine = pass.options.record_keys.Check(RecordKind::kSpec, pass.object.uid(), map);
  if (genuine.ok() || !pass.spec_is_valid || map.deleting() || !IsDue(pass, kept)) return absl::OkStatus();
  const kube::Resource maps = kube::resources::ConfigMaps();
  MEDLEY_ASSIGN_OR_RETURN(const absl::Status done, pass.Ask(DeleteObject{maps, map.key(), map.uid(), ""}));
  if (!done.ok() && !kube::IsNotFound(done) && !kube::IsConflict(done)) {
    return base::Annotate(done, "delete ConfigMap " + map.key().ToString());
  }
  CountRestore(pass, kept, maps, map.key().name, "changed");
  pass.RequeueAfter(kept.next - pass.world.steady);
  return absl::OkStatus();
}

absl::Status KeepSpec(Pass& pass, const TrainingJob& job) {
  const kube::Resource maps = kube::resources::ConfigMaps();
  KeptObject& kept = pass.Own(&Memory::objects).kept_spec;
  const kube::ObjectPtr cached = pass.Cached(maps);
  const auto owner = cached == nullptr ? std::nullopt : cached->controller();
  if (owner && owner->uid == pass.object.uid()) {
    kept.uid = cached->uid();
    return ReplaceRefusedSpec(pass, *cached, kept);
  }
  const bool known = !kept.uid.empty();
  const bool runs = pass.memory.stored_plan.record.has_value();
  if ((known || runs) && !IsDue(pass, kept)) return absl::OkStatus();
  if (known || runs) LookLater(pass, kept);
  MEDLEY_ASSIGN_OR_RETURN(const kube::Object map, EnsureOwned(pass, maps, SignedSpec(pass, job)));
  if (known && map.uid() != kept.uid) CountRestore(pass, kept, maps, map.key().name, "deleted");
  if (!known) kept.next = pass.world.steady + base::seconds(1);  // until the cache shows it
  kept.uid = map.uid();
  return absl::OkStatus();
}

// The members of the plan in force; nullopt: not known, or there is none.
std::optional<std::vector<MemberSlot>> SlotsInForce(const Pass& pass) {
  const PlanRecord& record = *pass.memory.stored_plan.record;
  if (pass.observed == nullptr || pass.observed->generation <= 0) return std::nullopt;
  const int64_t in_force = pass.observed->plan_generation;
  if (in_force == record.plan.generation) return record.slots;
  const bool is_fallback = record.fallback != nullptr && record.fallback->plan.generation == in_force;
  return is_fallback ? std::optional(record.fallback->slots) : std::nullopt;
}

// The most members that the group must have at the same time.
int GroupSize(const Pass& pass) {
  const auto planned = static_cast<int>(pass.memory.stored_plan.record->slots.size());
  const auto in_force = SlotsInForce(pass);
  if (!in_force) return planned;
  const auto exist = std::count_if(in_force->begin(), in_force->end(), [&](const MemberSlot& slot) {
    const kube::ObjectPtr pod = pass.Pod(slot.member);
    return pod != nullptr && !pass.IsTerminating(*pod);
  });
  return std::max(planned, static_cast<int>(exist));
}

absl::Status DeleteBudget(Pass& pass) {
  const kube::Resource budgets = kube::resources::PodDisruptionBudgets();
  const kube::ObjectPtr cached = pass.Cached(budgets);
  pass.Own(&Memory::objects).budget.reset();
  ForgetKept(pass, budgets);
  const auto owner = cached == nullptr ? std::nullopt : cached->controller();
  if (!owner || owner->uid != pass.object.uid() || cached->deleting()) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const absl::Status done, pass.Ask(DeleteObject{budgets, cached->key(), cached->uid(), ""}));
  return done.ok() || kube::IsNotFound(done) || kube::IsConflict(done)
             ? absl::OkStatus()
             : base::Annotate(done, "delete the PodDisruptionBudget of " + pass.object.key().ToString());
}

}  // namespace

absl::StatusOr<JobCredentials> ChooseCredentials(Pass& pass, const TrainingJob& job) {
  ObjectsState& state = pass.Own(&Memory::objects);
  if (!state.credentials.empty()) return state.credentials;
  const std::vector<JobCredentials>& own = pass.world.credentials;
  if (own.empty()) return base::Internal("the credentials of {} could not be made", job.key().ToString());
  const std::string used = FingerprintOfPods(pass);
  const auto match =
      std::find_if(own.begin(), own.end(), [&](const JobCredentials& each) { return FingerprintOf(each) == used; });
  JobCredentials chosen = match == own.end() ? own.front() : *match;
  std::string secret = NameOfSecret(job.name(), chosen);
  if (match == own.end() && !pass.world.pods.empty()) {
    const std::string name = EarlierTokenSecretName(job.name());
    MEDLEY_ASSIGN_OR_RETURN(JobCredentials earlier, EarlierCredentials(pass, name));
    if (!earlier.empty()) {
      chosen = std::move(earlier);
      secret = name;
    }
  }
  state.credentials = std::move(chosen);
  state.secret = std::move(secret);
  return state.credentials;
}

absl::Status KeepBaseObjects(Pass& pass, const TrainingJob& job) {
  const WorkerSettings& worker = pass.options.worker;
  MEDLEY_RETURN_IF_ERROR(ChooseCredentials(pass, job).status());
  const std::function<absl::Status()> all[] = {
      [&] { return KeepSecret(pass, job); },
      [&] { return KeepSpec(pass, job); },
      [&] {
        return KeepObject(pass, kube::resources::Services(), CoordinatorName(job.name()), false,
                          [&] { return CoordinatorService(job, worker); });
      },
      [&] {
        return KeepObject(pass, kube::resources::NetworkPolicies(), job.name(), false,
                          [&] { return JobNetworkPolicy(job, worker); });
      },
  };
  for (const auto& keep : all) {
    const absl::Status kept = keep();
    if (kept.ok()) continue;
    if (!pass.memory.stored_plan.record) return kept;
    pass.Publish(
        WriteLog{true, "an object of " + job.key().ToString() + " is not as it should be", base::ToString(kept)});
  }
  return absl::OkStatus();
}

absl::Status KeepBudget(Pass& pass, const TrainingJob& job) {
  ObjectsState& state = pass.Own(&Memory::objects);
  if (!job.run_policy.disruption_budget) return DeleteBudget(pass);
  if (const auto slots = SlotsInForce(pass)) state.members_in_force = static_cast<int>(slots->size());
  if (!state.members_in_force) return absl::OkStatus();
  const ObjectsState::Budget wanted{*state.members_in_force, job.run_policy.max_unavailable};
  // The coordinator counts as well.
  MEDLEY_RETURN_IF_ERROR(KeepObject(pass, kube::resources::PodDisruptionBudgets(), DisruptionBudgetName(job.name()),
                                    state.budget != wanted, [&] { return DisruptionBudget(job, wanted.members + 1); }));
  state.budget = wanted;
  return absl::OkStatus();
}

absl::Status KeepPodGroup(Pass& pass, const TrainingJob& job) {
  ObjectsState& state = pass.Own(&Memory::objects);
  const ObjectsState::Group wanted{WantedPodGroup(job.run_policy), GroupSize(pass)};
  const bool changed = state.group != wanted;
  if (!wanted.kind || (!changed && !state.joined)) {
    state.group = wanted;
    if (!wanted.kind) state.joined.reset();
    return absl::OkStatus();
  }
  state.joined.reset();
  const kube::Resource groups = PodGroups(*wanted.kind);
  const absl::Status done = KeepObject(
      pass, groups, PodGroupName(job.name()), changed, [&] { return PodGroup(job, *wanted.kind, wanted.members); },
      Seen::kOnlyOnServer);
  // A cluster without the kind does not know the path; one that forbids the call may not have the kind either.
  if (kube::IsNotFound(done) || done.code() == absl::StatusCode::kPermissionDenied) {
    pass.Warning("PodGroupUnavailable",
                 "spec.runPolicy.schedulingPolicy.podGroup: the operator cannot create a PodGroup of " +
                     groups.ApiVersion() + ", so pods are scheduled one by one: " + base::Message(done));
  } else if (!done.ok()) {
    return done;
  } else {
    state.joined = wanted.kind;
  }
  state.group = wanted;
  return absl::OkStatus();
}

}  // namespace medley::ops::lifecycle
