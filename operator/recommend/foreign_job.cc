#include "operator/recommend/foreign_job.h"

#include <limits>

#include "common/base/status.h"

namespace medley::ops::recommend {
namespace {

constexpr char kQueueLabel[] = "kueue.x-k8s.io/queue-name";

bool HasCondition(const kube::Object& object, std::initializer_list<std::string_view> types) {
  const kube::Json& conditions = object.At("/status/conditions");
  if (!conditions.is_array()) return false;
  for (const kube::Json& condition : conditions) {
    if (!condition.is_object() || condition.value("status", kube::Json()) != "True") continue;
    const kube::Json type = condition.value("type", kube::Json());
    for (const std::string_view wanted : types) {
      if (type.is_string() && type.get<std::string>() == wanted) return true;
    }
  }
  return false;
}

// A whole number within [0, 2^31), or nullopt: absent or null. Errors: InvalidArgument.
absl::StatusOr<std::optional<int>> Count(const kube::Object& object, const std::string& pointer) {
  const kube::Json& value = object.At(pointer);
  if (value.is_null()) return std::nullopt;
  if (!value.is_number_integer() || value < 0 || value > std::numeric_limits<int>::max()) {
    return base::InvalidArgument("{}: not a whole number from 0 on", pointer.substr(1));
  }
  return value.get<int>();
}

void AddSelector(const kube::Json& selector, std::map<std::string, std::string>& out) {
  if (!selector.is_object()) return;
  for (const auto& [key, value] : selector.items()) {
    if (value.is_string()) out[key] = value.get<std::string>();
  }
}

void ReadPodSpec(const kube::Object& object, const std::string& pointer, ForeignJob& job) {
  AddSelector(object.At(pointer + "/nodeSelector"), job.node_selector);
  if (const kube::Json& own = object.At(pointer + "/tolerations"); own.is_array()) job.tolerations = own;
}

absl::Status ReadJob(const kube::Object& object, ForeignJob& job) {
  job.finished = HasCondition(object, {"Complete", "Failed"});
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<int> parallelism, Count(object, "/spec/parallelism"));
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<int> completions, Count(object, "/spec/completions"));
  job.nodes = parallelism.value_or(1);
  job.sizable = object.String("/spec/completionMode") == "Indexed" && completions == job.nodes;
  ReadPodSpec(object, "/spec/template/spec", job);
  return absl::OkStatus();
}

absl::Status ReadJobSet(const kube::Object& object, ForeignJob& job) {
  job.finished = HasCondition(object, {"Completed", "Failed"});
  const kube::Json& replicated = object.At("/spec/replicatedJobs");
  if (!replicated.is_array() || replicated.empty()) return base::InvalidArgument("spec.replicatedJobs: empty");
  job.target = object.annotation(kTargetAnnotation);
  std::string names;
  int found = job.target.empty() && replicated.size() == 1 ? 0 : -1;
  for (size_t i = 0; i < replicated.size(); ++i) {
    const std::string name = object.String("/spec/replicatedJobs/" + std::to_string(i) + "/name");
    names += (names.empty() ? "" : ", ") + name;
    if (name == job.target && !name.empty()) found = static_cast<int>(i);
  }
  if (found < 0) {
    return base::InvalidArgument("annotation {}: {}; the replicated jobs are {}", kTargetAnnotation,
                                 job.target.empty() ? "needed, because there are several replicated jobs"
                                                    : "no replicated job has the name '" + job.target + "'",
                                 names);
  }
  job.target_index = found;
  const std::string at = "/spec/replicatedJobs/" + std::to_string(found);
  job.target = object.String(at + "/name");
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<int> replicas, Count(object, at + "/replicas"));
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<int> parallelism, Count(object, at + "/template/spec/parallelism"));
  const int64_t nodes = int64_t{replicas.value_or(1)} * parallelism.value_or(1);
  if (nodes > std::numeric_limits<int>::max()) return base::InvalidArgument("{}: too many pods", at.substr(1));
  job.nodes = static_cast<int>(nodes);
  ReadPodSpec(object, at + "/template/spec/template/spec", job);
  return absl::OkStatus();
}

absl::Status ReadTrainJob(const kube::Object& object, ForeignJob& job) {
  job.finished = HasCondition(object, {"Complete", "Failed"});
  job.target = object.annotation(kTargetAnnotation);
  if (job.target.empty()) job.target = "node";
  MEDLEY_ASSIGN_OR_RETURN(job.nodes, Count(object, "/spec/trainer/numNodes"));
  job.sizable = true;
  const kube::Json& overrides = object.At("/spec/podTemplateOverrides");
  if (!overrides.is_array()) return absl::OkStatus();
  for (size_t i = 0; i < overrides.size(); ++i) {
    const std::string at = "/spec/podTemplateOverrides/" + std::to_string(i);
    const kube::Json& targets = object.At(at + "/targetJobs");
    if (!targets.is_array()) continue;
    for (size_t t = 0; t < targets.size(); ++t) {
      if (object.String(at + "/targetJobs/" + std::to_string(t) + "/name") != job.target) continue;
      AddSelector(object.At(at + "/spec/nodeSelector"), job.node_selector);
    }
  }
  return absl::OkStatus();
}

}  // namespace

kube::Resource ResourceOf(ForeignKind kind) {
  switch (kind) {
    case ForeignKind::kJob:
      return {"batch", "v1", "jobs", "Job"};
    case ForeignKind::kJobSet:
      return {"jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet"};
    case ForeignKind::kTrainJob:
      break;
  }
  return {"trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob"};
}

absl::StatusOr<ForeignJob> ReadForeignJob(ForeignKind kind, const kube::Object& object) {
  ForeignJob job;
  job.kind = kind;
  job.key = object.key();
  job.uid = object.uid();
  job.wanted = object.label(kRecommendLabel) == "true" && !object.deleting();
  job.suspended = object.At("/spec/suspend") == kube::Json(true);
  job.queued = !object.label(kQueueLabel).empty();
  absl::Status read;
  switch (kind) {
    case ForeignKind::kJob:
      read = ReadJob(object, job);
      break;
    case ForeignKind::kJobSet:
      read = ReadJobSet(object, job);
      break;
    case ForeignKind::kTrainJob:
      read = ReadTrainJob(object, job);
      break;
  }
  if (!read.ok()) return read;
  return job;
}

}  // namespace medley::ops::recommend
