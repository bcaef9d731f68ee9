#include "operator/builders/pods.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/base/hash.h"
#include "common/base/quantity.h"
#include "common/base/status.h"
#include "operator/api/job_folder.h"
#include "operator/api/resources.h"
#include "operator/builders/contract.h"
#include "operator/builders/coordinator_resources.h"
#include "operator/builders/pod_group.h"
#include "operator/builders/restricted.h"
#include "operator/builders/template_overlay.h"
#include "operator/builders/worker_share.h"
#include "operator/builders/zone_pin.h"
#include "operator/records/program_plan.h"

namespace medley::ops {
namespace {

// The container that `kubectl logs` and `kubectl exec` choose, wherever an injected sidecar stands in the list.
constexpr char kDefaultContainerAnnotation[] = "kubectl.kubernetes.io/default-container";

using kube::Json;

struct Shape {
  std::string name;
  Role role = Role::kTrainer;
  const ResourcePool* pool = nullptr;
  std::string coordinator;
  Json labels = Json::object();
  Json resources = Json::object();
  const char* restart_policy = "Never";
  std::string zone = {};  // pinned to it; empty: any
  int64_t term = 0;       // of a coordinator
};

const PodTemplate& TemplateOf(const TrainingJob& job, Role role) {
  switch (role) {
    case Role::kCoordinator:
      return job.coordinator_template;
    case Role::kServer:
      return job.server_template;
    case Role::kTrainer:
    case Role::kProfiler:
      break;
  }
  return job.trainer_template;
}

// The templates of the pod, lowest precedence first.
std::vector<const PodTemplate*> TemplatesOf(const TrainingJob& job, const Shape& shape) {
  std::vector<const PodTemplate*> templates;
  if (shape.pool != nullptr) templates.push_back(&shape.pool->pod_template);
  templates.push_back(&job.pod_template);
  templates.push_back(&TemplateOf(job, shape.role));
  return templates;
}

Json MetadataOf(const TrainingJob& job, const Shape& shape, const char* field) {
  Json merged = Json::object();
  for (const PodTemplate* each : TemplatesOf(job, shape)) merged.update(WithoutOwn(each->metadata, field));
  return merged;
}

Json Labels(const TrainingJob& job, const Shape& shape) {
  Json labels = MetadataOf(job, shape, "labels");
  labels["app.kubernetes.io/name"] = "medley-worker";
  labels["app.kubernetes.io/managed-by"] = "medley-operator";
  labels[kJobNameLabel] = job.name();
  labels[kRoleLabel] = ToString(shape.role);
  if (shape.pool != nullptr) labels[kPoolLabel] = shape.pool->name;
  // With Volcano the PodGroup names the queue.
  if (!job.run_policy.queue.empty() && WantedPodGroup(job.run_policy) != PodGroupKind::kVolcano)
    labels["kueue.x-k8s.io/queue-name"] = job.run_policy.queue;
  labels.update(shape.labels);
  return labels;
}

void AddVolume(Json& spec, Json& container, const char* name, const VolumeMount& volume) {
  Json entry = volume.source;
  entry["name"] = name;
  spec["volumes"].push_back(std::move(entry));
  container["volumeMounts"].push_back({{"name", name}, {"mountPath", volume.mount_path}});
}

bool Computes(const Shape& shape) { return shape.role == Role::kTrainer || shape.role == Role::kProfiler; }

bool HasGpuImage(const WorkerSettings& settings, const Shape& shape) {
  return Computes(shape) && shape.pool != nullptr && shape.pool->cls == model::ResourceClass::kGpu &&
         !settings.gpu_image.empty();
}

std::string ImageOf(const TrainingJob& job, const WorkerSettings& settings, const Shape& shape) {
  if (Computes(shape) && job.program && !job.program->image.empty()) return job.program->image;
  return HasGpuImage(settings, shape) ? settings.gpu_image : settings.image;
}

Json Container(const TrainingJob& job, const WorkerSettings& settings, const Shape& shape) {
  return {
      {"name", kWorkerContainer},
      {"image", ImageOf(job, settings, shape)},
      {"ports", {{{"name", "grpc"}, {"containerPort", settings.listen_port}, {"protocol", "TCP"}}}},
      {"resources", shape.resources},
      // A worker that fails leaves its last words in the pod's status, which stays when its node does not.
      {"terminationMessagePolicy", "FallbackToLogsOnError"},
      {"securityContext",
       {{"allowPrivilegeEscalation", false}, {"readOnlyRootFilesystem", true}, {"capabilities", {{"drop", {"ALL"}}}}}},
      {"volumeMounts", Json::array({{{"name", "spec"}, {"mountPath", kSpecFolder}, {"readOnly", true}},
                                    {{"name", "tmp"}, {"mountPath", kTmpFolder}}})}};
}

Json PodSpec(const TrainingJob& job, const WorkerSettings& settings, const Shape& shape) {
  Json spec = {{"automountServiceAccountToken", false},
               {"enableServiceLinks", false},
               {"terminationGracePeriodSeconds", 30},
               {"securityContext",
                {{"runAsNonRoot", true},
                 {"runAsUser", 65532},
                 {"runAsGroup", 65532},
                 {"fsGroup", 65532},
                 {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
               {"volumes",
                {{{"name", "spec"}, {"configMap", {{"name", SpecConfigMapName(job.name())}}}},
                 {{"name", "tmp"}, {"emptyDir", Json::object()}}}}};
  Json container = Container(job, settings, shape);
  if (job.data_volume) AddVolume(spec, container, "data", *job.data_volume);
  if (job.checkpoint_volume) AddVolume(spec, container, "checkpoints", *job.checkpoint_volume);
  if (settings.metrics_port > 0) {
    container["ports"].push_back({{"name", "metrics"}, {"containerPort", settings.metrics_port}, {"protocol", "TCP"}});
  }
  if (!settings.image_pull_policy.empty()) container["imagePullPolicy"] = settings.image_pull_policy;
  for (const std::string& name : settings.image_pull_secrets) spec["imagePullSecrets"].push_back({{"name", name}});
  spec["containers"] = Json::array({std::move(container)});
  if (!job.run_policy.scheduler_name.empty()) spec["schedulerName"] = job.run_policy.scheduler_name;
  if (!job.run_policy.priority_class.empty()) spec["priorityClassName"] = job.run_policy.priority_class;
  if (shape.pool != nullptr && !shape.pool->node_selector.empty()) spec["nodeSelector"] = shape.pool->node_selector;
  if (shape.pool != nullptr && !shape.pool->tolerations.empty()) spec["tolerations"] = shape.pool->tolerations;
  return spec;
}

// Adds `entry` to a list of environment variables; replaces an entry with the same name.
void SetEnv(Json& env, const Json& entry) {
  for (Json& existing : env) {
    if (existing.value("name", "") == entry["name"]) {
      existing = entry;
      return;
    }
  }
  env.push_back(entry);
}

// Whole CPUs of the unit for processes that compute. More threads than CPUs would make them slower.
int ComputeThreads(const Shape& shape) {
  if (!Computes(shape) || shape.pool == nullptr) return 1;
  const auto cpu = shape.pool->unit_resources.find("cpu");
  if (cpu == shape.pool->unit_resources.end()) return 1;
  const auto cpus = base::ParseQuantity(cpu->second);
  return cpus.ok() ? static_cast<int>(std::clamp(*cpus, 1.0, 1024.0)) : 1;
}

// Where the container's termination message is; Kubernetes' default, unless a template says another path.
std::string TerminationLog(const Json& container) {
  const Json path = container.value("terminationMessagePath", Json());
  return path.is_string() && !path.get_ref<const std::string&>().empty() ? path.get<std::string>()
                                                                         : "/dev/termination-log";
}

// Whether the pod runs a program in an image that is not Medley's; a template may have chosen it.
bool NeedsAgent(const TrainingJob& job, const WorkerSettings& settings, const Shape& shape, const Json& spec) {
  if (!job.program || !Computes(shape)) return false;
  const std::string own = HasGpuImage(settings, shape) ? settings.gpu_image : settings.image;
  return std::ranges::any_of(spec["containers"], [&](const Json& container) {
    return container.value("name", "") == kWorkerContainer && container.value("image", "") != own;
  });
}

// The sizes that a profiler of a program measures besides one unit, "2,4"; empty: none. On GPUs none: processes of
// several units would share one, which collectives refuse.
std::string SizesOf(const TrainingJob& job, const Shape& shape) {
  if (shape.role != Role::kProfiler || !job.program || !job.program->measures_sizes || shape.pool == nullptr ||
      shape.pool->cls == model::ResourceClass::kGpu) {
    return "";
  }
  const int most = std::min(job.elasticity.max_units, shape.pool->limit);
  return fmt::format("{}", fmt::join(SizesToMeasure(job.program->legal_units, job.elasticity.min_units, most), ","));
}

// Precedence, highest first: what Medley needs (contract.h, worker_env.h); the pool's selector, tolerations, unit and
// unit.env; the template of the role; that of the job; that of the pool; the operator's defaults.
void Finish(const TrainingJob& job, const WorkerSettings& settings, const Shape& shape, Json& spec) {
  for (const PodTemplate* each : TemplatesOf(job, shape)) spec = OverlayPodSpec(std::move(spec), each->spec);
  FillRestricted(spec);
  spec["restartPolicy"] = shape.restart_policy;
  const bool is_profiler = shape.role == Role::kProfiler;
  KeepContract(std::string(ToString(shape.role)), SpecConfigMapName(job.name()),
               is_profiler ? "" : EarlierTokenSecretName(job.name()), spec);
  KeepStorage(job.storage, spec);
  if (shape.pool != nullptr) KeepPool(*shape.pool, spec);
  PinToZone(shape.zone, spec);
  if (NeedsAgent(job, settings, shape, spec)) KeepAgent(settings.image, settings.image_pull_policy, spec);
  for (Json& container : spec["containers"]) {
    if (container.value("name", "") != kWorkerContainer) continue;
    if (shape.role == Role::kCoordinator) FillCoordinatorResources(container);
    Json& env = container["env"];
    if (!env.is_array()) env = Json::array();
    if (shape.pool != nullptr) {
      for (const auto& [name, value] : shape.pool->unit_env) SetEnv(env, {{"name", name}, {"value", value}});
    }
    const WorkerIdentity identity{job.name(),
                                  job.object.uid(),
                                  shape.name,
                                  shape.pool != nullptr ? shape.pool->name : "",
                                  shape.coordinator,
                                  CheckpointDir(job),
                                  ComputeThreads(shape),
                                  shape.term,
                                  shape.role == Role::kCoordinator ? TerminationLog(container) : "",
                                  is_profiler,
                                  HasGpuImage(settings, shape) && shape.pool->unit_resources.contains(kGpuResource),
                                  shape.pool != nullptr ? shape.pool->memory_bytes : 0};
    if (const std::string sizes = SizesOf(job, shape); !sizes.empty()) {
      SetEnv(env, {{"name", kSizesVariable}, {"value", sizes}});
    }
    for (const Json& entry : WorkerEnv(settings, identity)) {
      // Only defaults, which pool and template may set:
      const bool is_default = entry["name"] == "OMP_NUM_THREADS" || entry["name"] == "MEDLEY_DEVICE";
      const bool set = std::any_of(env.begin(), env.end(), [&](const Json& e) { return e["name"] == entry["name"]; });
      if (!is_default || !set) SetEnv(env, entry);
    }
  }
}

kube::Object Build(const TrainingJob& job, const WorkerSettings& settings, const Shape& shape) {
  kube::Object pod(kube::resources::Pods(), {job.key().ns, shape.name});
  Json& json = pod.mutable_json();
  json["metadata"]["labels"] = Labels(job, shape);
  json["metadata"]["annotations"] = {{kDefaultContainerAnnotation, kWorkerContainer}};
  json["metadata"]["annotations"].update(MetadataOf(job, shape, "annotations"));
  json["metadata"]["annotations"][kTemplateAnnotation] = TemplateDigest(job, shape.role, shape.pool, settings);
  Json spec = PodSpec(job, settings, shape);
  Finish(job, settings, shape, spec);
  json["spec"] = std::move(spec);
  pod.SetController(job.object).IgnoreError();  // cannot fail: a new object has no other controller
  return pod;
}

Json UnitResources(const ResourcePool& pool) {
  return {{"requests", pool.unit_resources}, {"limits", pool.unit_resources}};
}

}  // namespace

std::string TemplateDigest(const TrainingJob& job, Role role, const ResourcePool* pool,
                           const WorkerSettings& settings) {
  Shape shape;
  shape.role = role;
  shape.pool = pool;
  Json all = Json::array();
  for (const PodTemplate* each : TemplatesOf(job, shape)) all.push_back(Json::array({each->metadata, each->spec}));
  all.push_back(ImageOf(job, settings, shape));
  if (job.program && Computes(shape)) all.push_back(settings.image);  // of the agent
  all.push_back(Json::array({settings.image_pull_policy, settings.image_pull_secrets}));
  if (pool != nullptr) {
    all.push_back(Json::array({pool->unit_resources, pool->unit_env, pool->node_selector, pool->tolerations}));
  }
  return base::HashHex(kube::Dump(all));
}

Json UnitPodSpec(const ResourcePool& pool) {
  Json spec = {{"containers", Json::array({{{"name", kWorkerContainer}}})}};
  spec = OverlayPodSpec(std::move(spec), pool.pod_template.spec);
  KeepPool(pool, spec);
  return spec;
}

absl::Status CheckUnit(const TrainingJob& job, const ResourcePool& pool) {
  const Json worker = {{"containers", Json::array({{{"name", kWorkerContainer}}})}};
  const Json pool_spec = OverlayPodSpec(worker, pool.pod_template.spec);
  for (const Role role : {Role::kTrainer, Role::kServer}) {
    Shape shape;
    shape.role = role;
    shape.pool = &pool;
    Json spec = worker;
    for (const PodTemplate* each : TemplatesOf(job, shape)) spec = OverlayPodSpec(std::move(spec), each->spec);
    const absl::Status fits = CheckWorkerShare(pool.unit_resources, spec, pool_spec);
    if (!fits.ok()) return base::Annotate(fits, fmt::format("a {} on pool '{}'", ToString(role), pool.name));
  }
  return absl::OkStatus();
}

void PreferOtherNodes(const std::vector<std::string>& nodes, kube::Object& pod) {
  constexpr int kMostWeight = 100;
  for (const std::string& node : nodes) {  // matchFields allows only one value
    const kube::Json other = {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", kube::Json::array({node})}};
    pod.mutable_json()[kube::Json::json_pointer(
                           "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution")]
        .push_back({{"weight", kMostWeight}, {"preference", {{"matchFields", kube::Json::array({other})}}}});
  }
}

std::string CheckpointDir(const TrainingJob& job) {
  if (!job.checkpoint_uri.empty()) return CheckpointUri(job.checkpoint_uri, job.object);
  if (!job.checkpoint_volume) return "";
  std::string dir = job.checkpoint_volume->mount_path;
  while (dir.size() > 1 && dir.back() == '/') dir.pop_back();
  return dir + "/" + JobFolder(job.object);
}

std::string CoordinatorOf(const kube::Object& pod) {
  for (const Json& container : pod.At("/spec/containers")) {
    if (!container.contains("env")) continue;
    for (const Json& entry : container["env"]) {
      if (entry.value("name", "") == kCoordinatorVariable) return entry.value("value", "");
    }
  }
  return "";
}

kube::Object CoordinatorPod(const TrainingJob& job, const WorkerSettings& settings, const std::string& name,
                            int64_t term) {
  Shape shape{name.empty() ? CoordinatorName(job.name()) : name,
              Role::kCoordinator,
              nullptr,
              "",
              Json::object(),
              Json::object(),
              "OnFailure"};
  shape.term = term;
  return Build(job, settings, shape);
}

kube::Object MemberPod(const TrainingJob& job, const MemberSlot& slot, const ResourcePool& pool,
                       const WorkerSettings& settings, const std::string& coordinator, int64_t generation) {
  Shape shape{slot.member, slot.role, &pool, coordinator, Json::object(), UnitResources(pool), "Never", slot.zone};
  shape.labels[kGenerationLabel] = std::to_string(generation);
  if (slot.role == Role::kTrainer) shape.labels[kStageLabel] = std::to_string(slot.stage);
  return Build(job, settings, shape);
}

kube::Object ProfilerPod(const TrainingJob& job, const ResourcePool& pool, const WorkerSettings& settings) {
  const Shape shape{
      ProfilerName(job.name(), pool.name), Role::kProfiler, &pool, "", Json::object(), UnitResources(pool), "Never"};
  return Build(job, settings, shape);
}

}  // namespace medley::ops
