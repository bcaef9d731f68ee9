#include "operator/builders/pod_group.h"

#include "operator/api/names.h"
#include "operator/api/resources.h"

namespace medley::ops {
namespace {

constexpr char kVolcanoScheduler[] = "volcano";
constexpr char kVolcanoAnnotation[] = "scheduling.k8s.io/group-name";
constexpr char kSchedulerPluginsLabel[] = "scheduling.x-k8s.io/pod-group";

}  // namespace

kube::Resource PodGroups(PodGroupKind kind) {
  if (kind == PodGroupKind::kVolcano) return {"scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", true};
  return {"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", true};
}

std::optional<PodGroupKind> WantedPodGroup(const RunPolicy& policy) {
  switch (policy.pod_group) {
    case PodGroupChoice::kNone:
      return std::nullopt;
    case PodGroupChoice::kSchedulerPlugins:
      return PodGroupKind::kSchedulerPlugins;
    case PodGroupChoice::kVolcano:
      return PodGroupKind::kVolcano;
    case PodGroupChoice::kAuto:
      break;
  }
  if (policy.scheduler_name.empty()) return std::nullopt;
  return policy.scheduler_name == kVolcanoScheduler ? PodGroupKind::kVolcano : PodGroupKind::kSchedulerPlugins;
}

kube::Object PodGroup(const TrainingJob& job, PodGroupKind kind, int members) {
  kube::Object group(PodGroups(kind), {job.key().ns, PodGroupName(job.name())});
  group.SetLabel(kJobNameLabel, job.name());
  group.SetLabel("app.kubernetes.io/managed-by", "medley-operator");
  group.SetController(job.object).IgnoreError();  // cannot fail: a new object has no other controller
  kube::Json spec = {{"minMember", members}};
  if (kind == PodGroupKind::kVolcano) {
    if (!job.run_policy.queue.empty()) spec["queue"] = job.run_policy.queue;
    if (!job.run_policy.priority_class.empty()) spec["priorityClassName"] = job.run_policy.priority_class;
  }
  group.mutable_json()["spec"] = std::move(spec);
  return group;
}

void JoinPodGroup(const TrainingJob& job, PodGroupKind kind, kube::Object& pod) {
  if (kind == PodGroupKind::kVolcano) {
    pod.SetAnnotation(kVolcanoAnnotation, PodGroupName(job.name()));
  } else {
    pod.SetLabel(kSchedulerPluginsLabel, PodGroupName(job.name()));
  }
}

}  // namespace medley::ops
