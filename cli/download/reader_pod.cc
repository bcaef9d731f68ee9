#include "cli/download/reader_pod.h"

#include "common/base/status.h"
#include "operator/api/resources.h"
#include "operator/api/training_job.h"
#include "operator/builders/contract.h"
#include "operator/builders/pods.h"
#include "operator/builders/worker_env.h"

namespace medley::cli {
namespace {

using kube::Json;

constexpr char kVolume[] = "checkpoints";

// The worker's container of the coordinator's pod; null: there is none. Injected sidecars have other names.
const Json* WorkerContainer(const std::optional<kube::Object>& pod) {
  if (!pod) return nullptr;
  for (const Json& container : pod->At("/spec/containers")) {
    if (container.value("name", "") == ops::kWorkerContainer) return &container;
  }
  return nullptr;
}

Json RestrictedPod() {
  return {{"runAsNonRoot", true},
          {"runAsUser", 65532},
          {"runAsGroup", 65532},
          {"fsGroup", 65532},
          {"seccompProfile", {{"type", "RuntimeDefault"}}}};
}

Json Container(const std::string& image, const std::string& folder, const std::string& secret) {
  return {
      {"name", ops::kWorkerContainer},
      {"image", image},
      {"args", {"--role=files"}},
      {"env",
       {{{"name", "MEDLEY_CHECKPOINT_DIR"}, {"value", folder}},
        {{"name", "MEDLEY_TOKEN"}, {"value", secret}},
        {{"name", "MEDLEY_LISTEN_PORT"}, {"value", std::to_string(kReaderPort)}},
        {{"name", "MEDLEY_POD_IP"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}}}},
      {"ports", {{{"name", "files"}, {"containerPort", kReaderPort}, {"protocol", "TCP"}}}},
      {"resources",
       {{"requests", {{"cpu", "50m"}, {"memory", "64Mi"}}}, {"limits", {{"cpu", "1"}, {"memory", "256Mi"}}}}},
      {"securityContext",
       {{"allowPrivilegeEscalation", false}, {"readOnlyRootFilesystem", true}, {"capabilities", {{"drop", {"ALL"}}}}}}};
}

}  // namespace

absl::StatusOr<kube::Object> MakeReaderPod(const ReaderPodInput& input) {
  MEDLEY_ASSIGN_OR_RETURN(const ops::TrainingJob job, ops::TrainingJob::FromObject(input.job));
  const std::string name = input.job.key().name;
  if (!job.keeps_checkpoints()) {
    return base::FailedPrecondition("job {} has no checkpoint volume, so its model was not kept", name);
  }
  const Json* worker = WorkerContainer(input.coordinator);
  std::string image = input.image;
  if (image.empty() && worker != nullptr) image = worker->value("image", "");
  if (image.empty()) {
    return base::FailedPrecondition(
        "the coordinator's pod of job {} was deleted (spec.runPolicy.cleanPodPolicy), so the image that can read its "
        "volume is not known; name it with --image",
        name);
  }
  Json container = Container(image, ops::CheckpointDir(job), input.secret);
  Json volume = {{"name", kVolume}};
  Json mounted = {{"name", kVolume}};
  if (job.checkpoint_volume) {
    std::string mount = job.checkpoint_volume->mount_path;
    while (mount.size() > 1 && mount.back() == '/') mount.pop_back();
    volume.update(job.checkpoint_volume->source);
    mounted.update({{"mountPath", mount}, {"readOnly", true}});
  } else {  // a copy of the model, which the pod fetches with the job's keys
    volume["emptyDir"] = Json::object();
    mounted["mountPath"] = ops::kTmpFolder;
    container["env"].push_back({{"name", "TMPDIR"}, {"value", ops::kTmpFolder}});
  }
  container["volumeMounts"] = Json::array({mounted});
  Json spec = {
      {"restartPolicy", "Never"},        {"activeDeadlineSeconds", 3600},      {"automountServiceAccountToken", false},
      {"enableServiceLinks", false},     {"terminationGracePeriodSeconds", 5}, {"securityContext", RestrictedPod()},
      {"volumes", Json::array({volume})}};
  if (input.coordinator) {
    for (const char* field : {"securityContext", "imagePullSecrets", "tolerations", "nodeSelector", "schedulerName"}) {
      const Json& value = input.coordinator->At(std::string("/spec/") + field);
      if (!value.is_null()) spec[field] = value;
    }
  }
  if (worker != nullptr) {
    for (const char* field : {"securityContext", "imagePullPolicy"}) {
      if (worker->contains(field)) container[field] = (*worker)[field];
    }
  }
  spec["containers"] = Json::array({std::move(container)});
  if (!job.checkpoint_volume) ops::KeepStorage(job.storage, spec);
  kube::Object pod(kube::resources::Pods(), {input.job.key().ns, input.name});
  pod.mutable_json()["metadata"]["labels"] = {{"app.kubernetes.io/name", "medley-download"},
                                              {"app.kubernetes.io/managed-by", "medley-cli"}};
  pod.mutable_json()["spec"] = std::move(spec);
  // Without blockOwnerDeletion, which not every user may set.
  pod.mutable_json()["metadata"]["ownerReferences"] = {{{"apiVersion", input.job.String("/apiVersion")},
                                                        {"kind", input.job.kind()},
                                                        {"name", name},
                                                        {"uid", input.job.uid()}}};
  return pod;
}

}  // namespace medley::cli
