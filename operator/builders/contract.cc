#include "operator/builders/contract.h"

#include <algorithm>

#include "operator/api/resources.h"
#include "operator/builders/template_overlay.h"
#include "operator/builders/worker_env.h"
#include "operator/builders/worker_share.h"

namespace medley::ops {
namespace {

using kube::Json;

constexpr char kSpecVolume[] = "spec";
constexpr char kStorageKeysVolume[] = "storage-keys";
constexpr char kAgentVolume[] = "medley-agent";  // the init container has this name too
constexpr char kAgent[] = "medley-agent";
constexpr int kSecretMode = 0440;  // the group is the pod's fsGroup

// Replaces the entry of `list` with this value of `key`, or adds it.
void SetEntry(Json& list, const char* key, const Json& entry) {
  if (!list.is_array()) list = Json::array();
  const auto same =
      std::find_if(list.begin(), list.end(), [&](const Json& each) { return each.value(key, Json()) == entry[key]; });
  if (same == list.end()) {
    list.push_back(entry);
  } else {
    *same = entry;
  }
}

Json* WorkerOf(Json& pod_spec) {
  for (Json& container : pod_spec["containers"]) {
    if (container.value("name", "") == kWorkerContainer) return &container;
  }
  return nullptr;
}

}  // namespace

void KeepContract(const std::string& role, const std::string& spec_map, const std::string& secret, Json& pod_spec) {
  SetEntry(pod_spec["volumes"], "name", {{"name", kSpecVolume}, {"configMap", {{"name", spec_map}}}});
  if (!secret.empty()) {
    SetEntry(pod_spec["volumes"], "name",
             {{"name", kCredentialsVolume}, {"secret", {{"secretName", secret}, {"defaultMode", kSecretMode}}}});
  }
  Json* worker = WorkerOf(pod_spec);
  if (worker == nullptr) return;  // cannot be: a template cannot remove it
  (*worker)["args"] = Json::array({"--role=" + role});
  SetEntry((*worker)["volumeMounts"], "mountPath",
           {{"name", kSpecVolume}, {"mountPath", kSpecFolder}, {"readOnly", true}});
  if (!secret.empty()) {
    SetEntry((*worker)["volumeMounts"], "mountPath",
             {{"name", kCredentialsVolume}, {"mountPath", kCredentialsFolder}, {"readOnly", true}});
  }
}

void KeepStorage(const StorageAccess& storage, Json& pod_spec) {
  Json* worker = WorkerOf(pod_spec);
  if (worker == nullptr) return;
  const auto set = [&](const char* name, const std::string& value) {
    if (!value.empty()) SetEntry((*worker)["env"], "name", {{"name", name}, {"value", value}});
  };
  set("AWS_ENDPOINT_URL_S3", storage.endpoint);
  set("AWS_REGION", storage.region);
  set("MEDLEY_S3_PATH_STYLE", storage.path_style ? "1" : "");
  set("MEDLEY_STORAGE_CA", storage.ca_bundle);
  if (storage.secret.empty()) return;
  set("MEDLEY_STORAGE_KEYS_DIR", kStorageKeysFolder);
  SetEntry((*worker)["volumeMounts"], "mountPath",
           {{"name", kStorageKeysVolume}, {"mountPath", kStorageKeysFolder}, {"readOnly", true}});
  const Json keys = {{"secretName", storage.secret}, {"defaultMode", kSecretMode}, {"optional", true}};
  SetEntry(pod_spec["volumes"], "name", {{"name", kStorageKeysVolume}, {"secret", keys}});
}

void KeepAgent(const std::string& image, const std::string& pull_policy, Json& pod_spec) {
  Json* worker = WorkerOf(pod_spec);
  if (worker == nullptr) return;
  const std::string path = std::string(kAgentFolder) + "/" + kAgent;
  Json copier = {
      {"name", kAgentVolume},
      {"image", image},
      {"command", Json::array({std::string("/usr/local/bin/") + kAgent})},
      {"args", Json::array({"--install=" + path})},
      {"terminationMessagePolicy", "FallbackToLogsOnError"},
      {"securityContext",
       {{"allowPrivilegeEscalation", false}, {"readOnlyRootFilesystem", true}, {"capabilities", {{"drop", {"ALL"}}}}}},
      {"volumeMounts", Json::array({{{"name", kAgentVolume}, {"mountPath", kAgentFolder}}})}};
  if (!pull_policy.empty()) copier["imagePullPolicy"] = pull_policy;
  const Json resources = worker->value("resources", Json::object());
  for (const auto& [list, amounts] : resources.items()) {
    for (const char* name : {"cpu", "memory", "ephemeral-storage"}) {
      if (amounts.is_object() && amounts.contains(name)) copier["resources"][list][name] = amounts[name];
    }
  }
  SetEntry(pod_spec["volumes"], "name", {{"name", kAgentVolume}, {"emptyDir", Json::object()}});
  SetEntry(pod_spec["initContainers"], "name", copier);
  (*worker)["command"] = Json::array({path});
  SetEntry((*worker)["volumeMounts"], "mountPath",
           {{"name", kAgentVolume}, {"mountPath", kAgentFolder}, {"readOnly", true}});
}

void KeepPool(const ResourcePool& pool, Json& pod_spec) {
  pod_spec.erase("nodeName");
  if (!pool.node_selector.empty()) {
    Json& selector = pod_spec["nodeSelector"];
    if (!selector.is_object()) selector = Json::object();
    for (const auto& [key, value] : pool.node_selector) selector[key] = value;
  }
  for (const Json& toleration : pool.tolerations) {
    Json& present = pod_spec["tolerations"];
    if (!present.is_array()) present = Json::array();
    if (std::find(present.begin(), present.end(), toleration) == present.end()) present.push_back(toleration);
  }
  Json* worker = WorkerOf(pod_spec);
  if (worker == nullptr) return;
  const Json pool_spec =
      OverlayPodSpec({{"containers", Json::array({{{"name", kWorkerContainer}}})}}, pool.pod_template.spec);
  const UnitAmounts share = WorkerShare(pool.unit_resources, pod_spec, pool_spec);
  for (const char* list : {"requests", "limits"}) {
    Json& resources = (*worker)["resources"][list];
    if (!resources.is_object()) resources = Json::object();
    for (const auto& [name, amount] : share) resources[name] = amount;
  }
}

Json WithoutOwn(const Json& metadata, const char* field) {
  Json kept = Json::object();
  if (!metadata.is_object() || !metadata.contains(field) || !metadata[field].is_object()) return kept;
  for (const auto& [name, value] : metadata[field].items()) {
    if (!name.starts_with("medley.dev/")) kept[name] = value;
  }
  return kept;
}

}  // namespace medley::ops
