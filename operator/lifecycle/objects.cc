#include "operator/lifecycle/objects.h"

#include <algorithm>

#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/builders/credentials.h"
#include "operator/builders/objects.h"
#include "operator/lifecycle/pass.h"

namespace medley::ops::lifecycle {
namespace {

// Creates the Secret again, with what the job's processes know, if another client has deleted it.
absl::Status KeepSecret(Pass& pass, const TrainingJob& job) {
  const kube::Resource secrets = kube::resources::Secrets();
  KeptObject& kept = pass.memory.objects.kept[secrets.kind];
  if (pass.world.steady < kept.next) return absl::OkStatus();
  LookLater(pass, kept);
  const kube::Object secret = TokenSecret(job, pass.memory.objects.credentials);
  MEDLEY_ASSIGN_OR_RETURN(const absl::StatusOr<kube::Object> live, pass.Ask(GetObject{secrets, secret.key()}));
  if (kube::IsNotFound(live.status())) {
    MEDLEY_RETURN_IF_ERROR(EnsureOwned(pass, secrets, secret).status());
    CountRestore(pass, kept, secrets, secret.key().name, "deleted");
    return absl::OkStatus();
  }
  if (!live.ok()) return base::Annotate(live.status(), "read Secret " + secret.key().ToString());
  if (CredentialsOf(*live) == pass.memory.objects.credentials) return absl::OkStatus();
  const std::string what = fmt::format(
      "Secret {} was replaced and holds another token or CA than the job's pods, so new pods cannot join: delete it, "
      "and the operator creates it again.",
      secret.key().name);
  pass.Warning("TokenReplaced", what);
  return base::FailedPrecondition("{}", what);
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
  KeptObject& kept = pass.memory.objects.kept[maps.kind];
  const kube::ObjectPtr cached = pass.Cached(maps);
  const auto owner = cached == nullptr ? std::nullopt : cached->controller();
  if (owner && owner->uid == pass.object.uid()) {
    kept.uid = cached->uid();
    return ReplaceRefusedSpec(pass, *cached, kept);
  }
  const bool known = !kept.uid.empty();
  const bool runs = pass.memory.planning.record.has_value();
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
  const PlanRecord& record = *pass.memory.planning.record;
  if (pass.observed == nullptr || pass.observed->generation <= 0) return std::nullopt;
  const int64_t in_force = pass.observed->plan_generation;
  if (in_force == record.plan.generation) return record.slots;
  const bool is_fallback = record.fallback != nullptr && record.fallback->plan.generation == in_force;
  return is_fallback ? std::optional(record.fallback->slots) : std::nullopt;
}

// The most members that the group must have at the same time.
int GroupSize(const Pass& pass) {
  const auto planned = static_cast<int>(pass.memory.planning.record->slots.size());
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
  pass.memory.objects.budget.reset();
  pass.memory.objects.kept.erase(budgets.kind);
  const auto owner = cached == nullptr ? std::nullopt : cached->controller();
  if (!owner || owner->uid != pass.object.uid() || cached->deleting()) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const absl::Status done, pass.Ask(DeleteObject{budgets, cached->key(), cached->uid(), ""}));
  return done.ok() || kube::IsNotFound(done) || kube::IsConflict(done)
             ? absl::OkStatus()
             : base::Annotate(done, "delete the PodDisruptionBudget of " + pass.object.key().ToString());
}

}  // namespace

absl::StatusOr<JobCredentials> EnsureCredentials(Pass& pass, const TrainingJob& job) {
  ObjectsState& state = pass.memory.objects;
  if (!state.credentials.empty()) return state.credentials;
  const bool planned = pass.memory.planning.record.has_value();
  MEDLEY_ASSIGN_OR_RETURN(const kube::Object secret,
                          EnsureOwned(pass, kube::resources::Secrets(), TokenSecret(job, pass.world.fresh), planned));
  state.credentials = CredentialsOf(secret);
  if (state.credentials.empty()) {
    return base::FailedPrecondition(
        "Secret {} holds no token, or half a CA; delete it, and the operator creates it again",
        secret.key().ToString());
  }
  LookLater(pass, state.kept[kube::resources::Secrets().kind]);
  return state.credentials;
}

absl::Status KeepBaseObjects(Pass& pass, const TrainingJob& job) {
  const WorkerSettings& worker = pass.options.worker;
  MEDLEY_RETURN_IF_ERROR(EnsureCredentials(pass, job).status());
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
    if (!pass.memory.planning.record) return kept;
    pass.Publish(
        WriteLog{true, "an object of " + job.key().ToString() + " is not as it should be", base::ToString(kept)});
  }
  return absl::OkStatus();
}

absl::Status KeepBudget(Pass& pass, const TrainingJob& job) {
  ObjectsState& state = pass.memory.objects;
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
  ObjectsState& state = pass.memory.objects;
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
