// The objects of a job that are no pods: those that every job needs, and those that follow its
// plan.
#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/builders/objects.h"
#include "operator/controllers/job_pass.h"

namespace medley::ops {

// OK: the object that has the name is this job's. Otherwise it may be that of a job which had the
// name before, and is going; or somebody's, who must be told.
absl::Status JobPass::CheckOwned(const kube::Object& existing) {
  const auto owner = existing.controller();
  if (owner && owner->uid == object_.uid()) return absl::OkStatus();
  const std::string what = existing.kind() + " " + existing.key().ToString();
  if (owner && owner->kind == TrainingJobs().kind && owner->name == object_.key().name)
    return base::Unavailable("{} of an earlier job of this name is still there", what);
  Event(EventRecorder::Type::kWarning, "NameTaken", what + " belongs to somebody else; the job needs this name");
  return base::FailedPrecondition("{} belongs to somebody else", what);
}

absl::Status JobPass::EnsureOwned(const kube::Resource& resource, const kube::Object& object) {
  const auto made = deps_.client.Create(resource, object);
  if (made.ok()) return absl::OkStatus();
  if (!kube::IsAlreadyExists(made.status())) {
    return base::Annotate(made.status(), "create " + resource.kind + " " + object.key().ToString());
  }
  MEDLEY_ASSIGN_OR_RETURN(const kube::Object existing, deps_.client.Get(resource, object.key()));
  return CheckOwned(existing);
}

absl::StatusOr<std::string> JobPass::Token() {
  if (!memory_.token.empty()) return memory_.token;
  const kube::Key key{job_->key().ns, TokenSecretName(job_->name())};
  const auto get = [&] { return deps_.client.Get(kube::resources::Secrets(), key); };
  // A job with a plan has one; of another it is most likely made here.
  absl::StatusOr<kube::Object> secret = base::NotFound("not looked for");
  if (record_) secret = get();
  if (kube::IsNotFound(secret.status())) {
    std::string token;
    for (int i = 0; i < 4; ++i) token += fmt::format("{:016x}", deps_.entropy());
    secret = deps_.client.Create(kube::resources::Secrets(), TokenSecret(*job_, token));
    if (kube::IsAlreadyExists(secret.status())) secret = get();
  }
  if (!secret.ok()) return base::Annotate(secret.status(), "secret " + key.ToString());
  MEDLEY_RETURN_IF_ERROR(CheckOwned(*secret));
  const std::string token = TokenOf(*secret);
  if (token.empty()) return base::FailedPrecondition("secret {} has no token", key.ToString());
  memory_.token = token;
  return token;
}

absl::Status JobPass::EnsureBaseObjects() {
  if (memory_.base_objects_made) return absl::OkStatus();
  MEDLEY_RETURN_IF_ERROR(Token().status());
  const WorkerSettings& worker = deps_.options.worker;
  MEDLEY_RETURN_IF_ERROR(EnsureOwned(kube::resources::ConfigMaps(), SpecConfigMap(*job_)));
  MEDLEY_RETURN_IF_ERROR(EnsureOwned(kube::resources::Services(), CoordinatorService(*job_, worker)));
  MEDLEY_RETURN_IF_ERROR(EnsureOwned(kube::resources::NetworkPolicies(), JobNetworkPolicy(*job_, worker)));
  memory_.base_objects_made = true;
  return absl::OkStatus();
}

absl::Status JobPass::Put(const kube::Resource& resource, const kube::Object& object) {
  return deps_.client
      .Patch(resource, object.key(), kube::PatchType::kApply, object.json(),
             {.field_manager = "medley-operator", .force = true})
      .status();
}

// Made when the plan is in force: what does not run yet protects nobody, and each of its pods that starts would have
// the budget counted anew.
absl::Status JobPass::EnsureBudget() {
  const RunPolicy& policy = job_->run_policy;
  const auto members = static_cast<int>(record_->slots.size());
  const JobMemory::Budget wanted{policy.disruption_budget, members, policy.max_unavailable};
  if (memory_.budget == wanted) return absl::OkStatus();
  const kube::Resource budgets = kube::resources::PodDisruptionBudgets();
  absl::Status done;
  if (wanted.wanted) {
    done = Put(budgets, DisruptionBudget(*job_, members + 1));  // and the coordinator
  } else {
    done = deps_.client.Delete(budgets, {job_->key().ns, DisruptionBudgetName(job_->name())});
    if (kube::IsNotFound(done)) done = absl::OkStatus();
  }
  if (!done.ok()) return base::Annotate(done, "the job's PodDisruptionBudget");
  memory_.budget = wanted;
  return absl::OkStatus();
}

// Before its pods.
absl::Status JobPass::EnsurePodGroup() {
  const auto members = static_cast<int>(record_->slots.size());
  const JobMemory::Group wanted{WantedPodGroup(job_->run_policy), members};
  if (memory_.group == wanted) return absl::OkStatus();
  memory_.pod_group.reset();
  if (wanted.kind) {
    absl::Status done = Put(PodGroups(*wanted.kind), PodGroup(*job_, *wanted.kind, members));
    if (done.ok()) memory_.pod_group = wanted.kind;
    // A cluster without the kind does not know the path; one that forbids it might not have it.
    if (kube::IsNotFound(done) || done.code() == absl::StatusCode::kPermissionDenied) {
      Event(EventRecorder::Type::kWarning, "PodGroupUnavailable",
            "spec.runPolicy.schedulingPolicy.podGroup: no PodGroup of " + PodGroups(*wanted.kind).ApiVersion() +
                " can be made, and pods are scheduled one by one: " + base::Message(done));
      done = absl::OkStatus();
    }
    if (!done.ok()) return base::Annotate(done, "the job's PodGroup");
  }
  memory_.group = wanted;
  return absl::OkStatus();
}

}  // namespace medley::ops
