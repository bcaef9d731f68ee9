#include "operator/lifecycle/admission.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/model/fingerprint.h"
#include "common/model/job_spec.h"
#include "kube/errors.h"
#include "operator/api/resources.h"
#include "operator/api/validate.h"
#include "operator/lifecycle/pass.h"

namespace medley::ops::lifecycle {
namespace {

std::string Join(const std::vector<std::string>& sentences) {
  std::string joined;
  for (const std::string& sentence : sentences) joined += (joined.empty() ? "" : "; ") + sentence;
  return joined;
}

// A conflict means that the cache is behind: the newer object brings another pass.
absl::Status PatchFinalizers(Pass& pass, kube::Json finalizers) {
  const kube::Json metadata = {{"finalizers", std::move(finalizers)},
                               {"resourceVersion", pass.object.resource_version()}};
  MEDLEY_ASSIGN_OR_RETURN(const absl::Status patched, pass.Ask(PatchJob{{{"metadata", metadata}}, ""}));
  return kube::IsConflict(patched) ? absl::OkStatus() : patched;
}

}  // namespace

JobInput ReadJob(kube::ObjectPtr object, const kube::Json& admitted_spec) {
  JobInput input;
  auto job = TrainingJob::FromObject(*object);
  if (!job.ok()) {
    input.problems.push_back(base::Message(job.status()));
    input.reason = Reason::kInvalidSpec;
    input.object = std::move(object);
    return input;
  }
  input.job = *std::move(job);
  input.problems = ValidateTrainingJob(*object);
  if (admitted_spec.is_object()) {
    for (std::string& sentence : ValidateTrainingJobUpdate(admitted_spec, object->At("/spec"))) {
      input.problems.push_back(std::move(sentence));
    }
  }
  const auto spec = model::ParseJobSpec(kube::Dump(input.job->spec));
  if (spec.ok()) input.profile_hash = model::ProfileHash(input.job->spec);
  if (!input.problems.empty()) {
    input.reason = Reason::kInvalidSpec;
  } else if (const absl::Status valid = spec.ok() ? model::Validate(*spec) : spec.status(); !valid.ok()) {
    input.reason = Reason::kInvalidModel;
    input.problems.push_back(base::Message(valid));
  }
  input.object = std::move(object);
  return input;
}

void RefuseSpec(Pass& pass, const JobInput& input) {
  pass.spec_is_valid = false;
  pass.report.observed_generation = pass.object.generation();
  SetCondition(pass, kPlannedCondition, ConditionStatus::kFalse, input.reason, Join(input.problems));
}

void AcceptSpec(Pass& pass) {
  Conditions& conditions = pass.report.conditions;
  const Condition* planned = conditions.Find(kPlannedCondition);
  if (planned == nullptr) return;
  // The planner refuses models as well: that stands until it is asked again, or the spec is edited.
  const bool edited = planned->observed_generation != pass.object.generation();
  const bool refused = planned->Has(Reason::kInvalidSpec) || (planned->Has(Reason::kInvalidModel) && edited);
  if (refused) conditions.Remove(kPlannedCondition);
}

bool HasFinalizer(const kube::Object& job) {
  const kube::Json& finalizers = job.At("/metadata/finalizers");
  return finalizers.is_array() && std::find(finalizers.begin(), finalizers.end(), kFinalizer) != finalizers.end();
}

absl::Status EnsureFinalizer(Pass& pass) {
  if (HasFinalizer(pass.object)) return absl::OkStatus();
  const kube::Json& finalizers = pass.object.At("/metadata/finalizers");
  kube::Json list = finalizers.is_array() ? finalizers : kube::Json::array();
  list.push_back(kFinalizer);
  return PatchFinalizers(pass, std::move(list));
}

absl::Status RemoveFinalizer(Pass& pass) {
  if (!HasFinalizer(pass.object)) return absl::OkStatus();
  kube::Json list = pass.object.At("/metadata/finalizers");
  list.erase(std::find(list.begin(), list.end(), kFinalizer));
  const absl::Status patched = PatchFinalizers(pass, std::move(list));
  return kube::IsNotFound(patched) ? absl::OkStatus() : patched;
}

}  // namespace medley::ops::lifecycle
