#include "operator/capacity/trim.h"

#include <initializer_list>
#include <string_view>
#include <utility>

#include "kube/pod.h"
#include "operator/api/resources.h"
#include "operator/api/start_failure.h"
#include "operator/builders/pod_signature.h"
#include "operator/builders/worker_env.h"
#include "operator/capacity/pod_demand.h"
#include "operator/capacity/unit_needs.h"

namespace medley::ops {
namespace {

using kube::Json;

constexpr std::string_view kOwnPrefix = "medley.dev/";

void KeepFields(Json& object, std::initializer_list<std::string_view> names) {
  if (!object.is_object()) return;
  Json kept = Json::object();
  for (const std::string_view name : names) {
    const auto found = object.find(name);
    if (found != object.end()) kept[std::string(name)] = std::move(*found);
  }
  object = std::move(kept);
}

void KeepOwn(Json& metadata, const char* field) {
  if (!metadata.is_object() || !metadata.contains(field)) return;
  Json kept = Json::object();
  for (const auto& [name, value] : metadata[field].items()) {
    if (std::string_view(name).substr(0, kOwnPrefix.size()) == kOwnPrefix) kept[name] = value;
  }
  if (kept.empty()) {
    metadata.erase(field);
  } else {
    metadata[field] = std::move(kept);
  }
}

void KeepList(Json& object, const char* field, std::initializer_list<std::string_view> names) {
  if (!object.is_object() || !object.contains(field) || !object[field].is_array()) return;
  for (Json& entry : object[field]) KeepFields(entry, names);
}

// The operator reads the phase, the conditions PodScheduled, DisruptionTarget and Ready, and when a pod got its node.
void TrimStatus(Json& status) {
  KeepFields(status, {"phase", "reason", "message", "podIP", "nominatedNodeName", "conditions", "containerStatuses"});
  KeepList(status, "conditions", {"type", "status", "reason", "lastTransitionTime"});
  KeepList(status, "containerStatuses", {"name", "state", "lastState", "restartCount"});
  if (status.contains("conditions")) {
    Json kept = Json::array();
    for (Json& condition : status["conditions"]) {
      const std::string type = condition.value("type", "");
      if (type != "PodScheduled") condition.erase("lastTransitionTime");
      if (type == "PodScheduled" || type == "DisruptionTarget" || type == "Ready") {
        kept.push_back(std::move(condition));
      }
    }
    status["conditions"] = std::move(kept);
  }
  if (!status.contains("containerStatuses")) return;
  for (Json& container : status["containerStatuses"]) {
    if (container.contains("state") && container["state"].contains("running")) {
      container["state"]["running"] = Json::object();
    }
    if (container.contains("lastState") && container["lastState"].empty()) {
      container.erase("lastState");
    }
  }
}

// Why a pod does not start (operator/api/start_failure.h) is kept until it has started; few pods are in between.
Json StartingFields(const kube::Object& pod) {
  Json kept = {{"volumes", Json::array()}, {"init", pod.At("/status/initContainerStatuses")}};
  for (const Json& volume : pod.At("/spec/volumes")) {
    Json source = volume;
    KeepFields(source, {"persistentVolumeClaim", "configMap", "secret", "csi", "nfs"});
    if (!source.empty()) kept["volumes"].push_back(std::move(source));
  }
  KeepList(kept, "init", {"name", "state"});
  for (const Json& json : pod.At("/status/conditions")) {
    const kube::Object condition(json);
    if (condition.String("/type") != "PodScheduled") continue;
    kept["scheduled"] = json;
    KeepFields(kept["scheduled"], {"type", "status", "reason", "message", "lastTransitionTime"});
  }
  return kept;
}

void PutStartingFields(Json kept, Json& json) {
  if (!kept["volumes"].empty()) json["spec"]["volumes"] = std::move(kept["volumes"]);
  if (kept["init"].is_array()) json["status"]["initContainerStatuses"] = std::move(kept["init"]);
  if (!kept.contains("scheduled") || !json["status"].contains("conditions")) return;
  for (Json& condition : json["status"]["conditions"]) {
    if (condition.value("type", "") == "PodScheduled") condition = kept["scheduled"];
  }
}

// One container that requests everything that the pod requests, with the one environment variable that is read.
Json Folded(const kube::Object& pod, const PodAmounts& amounts) {
  Json container = {{"name", kWorkerContainer}, {"resources", Json::object()}};
  Amounts beyond;  // requests that differ from their limit; a limit alone requests its own amount
  for (const auto& [name, amount] : amounts.requests) {
    const auto limit = amounts.limits.find(name);
    if (limit == amounts.limits.end() || limit->second != amount) beyond[name] = amount;
  }
  if (!beyond.empty()) container["resources"]["requests"] = WriteAmounts(beyond);
  if (!amounts.limits.empty()) container["resources"]["limits"] = WriteAmounts(amounts.limits);
  for (const Json& each : pod.At("/spec/containers")) {
    const auto env = each.find("env");
    if (env == each.end() || !env->is_array()) continue;
    for (const Json& entry : *env) {
      if (entry.value("name", "") == kCoordinatorVariable) container["env"] = Json::array({entry});
    }
  }
  return container;
}

void TrimMetadata(Json& metadata) {
  KeepFields(metadata, {"name", "namespace", "uid", "resourceVersion", "labels", "annotations", "ownerReferences",
                        "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"});
  KeepOwn(metadata, "annotations");
}

void DropAnnotation(Json& metadata, const char* name) {
  if (!metadata.contains("annotations")) return;
  metadata["annotations"].erase(name);
  if (metadata["annotations"].empty()) metadata.erase("annotations");
}

bool BelongsToJob(const kube::Object& pod) {
  const auto owner = pod.controller();
  return owner && owner->kind == TrainingJobs().kind && owner->api_version.starts_with(std::string(kGroup) + "/");
}

// Whoever may edit the pod may change its labels and annotations. Its containers cannot be changed, and the operator
// has written there what these said.
void RestoreClaims(kube::Object& pod) {
  const PodClaims claims = ClaimsOf(pod);
  if (!claims.job.empty()) pod.SetLabel(kJobNameLabel, claims.job);
  if (!claims.pool.empty()) pod.SetLabel(kPoolLabel, claims.pool);
  if (!claims.role.empty()) pod.SetLabel(kRoleLabel, claims.role);
  if (!claims.credentials.empty()) pod.SetAnnotation(kTokenAnnotation, claims.credentials);
}

}  // namespace

void TrimPod(kube::Object& pod, SignedPods* signed_pods) {
  const bool own = BelongsToJob(pod);
  if (own) RestoreClaims(pod);
  const PodOrigin origin = own && signed_pods != nullptr ? signed_pods->OriginOf(pod) : PodOrigin::kOwn;
  const Json container = Folded(pod, AmountsOf(pod));
  const bool starts = own && !HasStarted(pod) && !kube::HasEnded(pod);
  Json starting = starts ? StartingFields(pod) : Json();
  const bool waits = starts && pod.String("/spec/nodeName").empty();
  const std::string needs = waits ? OtherNeedsOf(pod) : "";
  Json& json = pod.mutable_json();
  KeepFields(json, {"metadata", "spec", "status"});
  TrimMetadata(json["metadata"]);
  KeepOwn(json["metadata"], "labels");
  Json& spec = json["spec"];
  // Where a unit that waits for a node may run decides how much room it takes from others.
  if (own && spec.value("nodeName", "").empty()) {
    KeepFields(spec, {"priorityClassName", "activeDeadlineSeconds", "nodeSelector", "affinity", "tolerations"});
    if (spec.contains("affinity")) KeepFields(spec["affinity"], {"nodeAffinity"});
  } else {
    KeepFields(spec, {"nodeName", "priorityClassName", "activeDeadlineSeconds"});
  }
  spec["containers"] = Json::array({container});
  Json& status = json["status"];
  DropAnnotation(json["metadata"], kNeedsAnnotation);
  DropAnnotation(json["metadata"], kUnsignedAnnotation);
  if (origin != PodOrigin::kOwn) {
    json["metadata"]["annotations"][kUnsignedAnnotation] = origin == PodOrigin::kCopy ? kCopiedSignature : kNoSignature;
  }
  if (!own) {
    json["metadata"].erase("ownerReferences");
    json["metadata"].erase("labels");
    json["metadata"].erase("creationTimestamp");
    DropAnnotation(json["metadata"], kTemplateAnnotation);
    KeepFields(status, {"phase", "nominatedNodeName"});
    return;
  }
  TrimStatus(status);
  if (starts) PutStartingFields(std::move(starting), json);
  if (!starts) DropAnnotation(json["metadata"], kTemplateAnnotation);
  if (!needs.empty()) pod.SetAnnotation(kNeedsAnnotation, needs);
  if (!json["metadata"].contains("ownerReferences")) return;
  KeepList(json["metadata"], "ownerReferences", {"apiVersion", "kind", "name", "uid", "controller"});
}

void TrimNode(kube::Object& node) {
  Json& json = node.mutable_json();
  KeepFields(json, {"metadata", "spec", "status"});
  TrimMetadata(json["metadata"]);
  json["metadata"].erase("ownerReferences");
  json["metadata"].erase("creationTimestamp");
  KeepFields(json["spec"], {"unschedulable", "taints"});
  Json& status = json["status"];
  KeepFields(status, {"allocatable", "conditions"});
  KeepList(status, "conditions", {"type", "status"});
}

void TrimOwn(kube::Object& object) {
  Json& json = object.mutable_json();
  KeepFields(json, {"metadata", "spec"});
  KeepFields(json["metadata"],
             {"name", "namespace", "uid", "resourceVersion", "labels", "ownerReferences", "deletionTimestamp"});
}

void Trim(SignedPods& own, const kube::Resource& resource, kube::Object& object) {
  if (resource == kube::resources::Services() || resource == kube::resources::NetworkPolicies() ||
      resource == kube::resources::PodDisruptionBudgets()) {
    return TrimOwn(object);
  }
  if (resource == kube::resources::Pods()) return TrimPod(object, &own);
  if (resource == kube::resources::Nodes()) return TrimNode(object);
  TrimAny(object);
}

void TrimAny(kube::Object& object) {
  Json& json = object.mutable_json();
  if (!json.is_object() || !json.contains("metadata")) return;
  Json& metadata = json["metadata"];
  metadata.erase("managedFields");
  if (metadata.contains("annotations")) {
    metadata["annotations"].erase("kubectl.kubernetes.io/last-applied-configuration");
  }
}

}  // namespace medley::ops
