#include "operator/capacity/unit_needs.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "common/base/hash.h"
#include "operator/api/resources.h"
#include "operator/builders/pods.h"
#include "operator/builders/zone_pin.h"
#include "operator/capacity/pod_demand.h"

namespace medley::ops {
namespace {

using kube::Json;

// Fields of a pod's spec that do not narrow the choice of nodes, and those that AsksOnlyForUnit compares itself.
constexpr std::array<std::string_view, 31> kHarmless = {"activeDeadlineSeconds",
                                                        "automountServiceAccountToken",
                                                        "containers",
                                                        "dnsConfig",
                                                        "dnsPolicy",
                                                        "enableServiceLinks",
                                                        "ephemeralContainers",
                                                        "hostAliases",
                                                        "hostIPC",
                                                        "hostPID",
                                                        "hostUsers",
                                                        "hostname",
                                                        "imagePullSecrets",
                                                        "initContainers",
                                                        "nodeName",
                                                        "nodeSelector",
                                                        "overhead",
                                                        "priority",
                                                        "priorityClassName",
                                                        "readinessGates",
                                                        "resources",
                                                        "restartPolicy",
                                                        "securityContext",
                                                        "serviceAccount",
                                                        "serviceAccountName",
                                                        "setHostnameAsFQDN",
                                                        "shareProcessNamespace",
                                                        "subdomain",
                                                        "terminationGracePeriodSeconds",
                                                        "tolerations",  // more of them allow more nodes
                                                        "volumes"};
constexpr std::array<std::string_view, 5> kVolumesOfAnyNode = {"configMap", "downwardAPI", "emptyDir", "projected",
                                                               "secret"};
// In names of labels and annotations that schedulers and autoscalers read.
constexpr std::array<std::string_view, 5> kOfSchedulers = {"scheduling", "autoscaler", "volcano", "kueue", "karpenter"};

bool IsHarmless(std::string_view field) {
  return std::find(kHarmless.begin(), kHarmless.end(), field) != kHarmless.end();
}

// As the API server fills it in.
bool IsDefault(const std::string& field, const Json& value) {
  if (value.is_null() || value == Json(false) || (value.is_structured() && value.empty())) return true;
  return (field == "schedulerName" && value == "default-scheduler") ||
         (field == "preemptionPolicy" && value == "PreemptLowerPriority");
}

bool IsOfAnyNode(const Json& volume) {
  if (!volume.is_object()) return false;
  return std::all_of(volume.items().begin(), volume.items().end(), [](const auto& field) {
    return field.key() == "name" ||
           std::find(kVolumesOfAnyNode.begin(), kVolumesOfAnyNode.end(), field.key()) != kVolumesOfAnyNode.end();
  });
}

Json AffinityOf(const Json& affinity) {
  Json required = Json::object();
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    if (!affinity.is_object() || !affinity.contains(kind)) continue;
    const Json terms = affinity[kind].value("requiredDuringSchedulingIgnoredDuringExecution", Json());
    if (!IsDefault(kind, terms)) required[kind] = terms;
  }
  return required;
}

void AddPorts(const Json& containers, Json& needs) {
  if (!containers.is_array()) return;
  for (const Json& container : containers) {
    const Json ports = container.value("ports", Json::array());
    for (const Json& port : ports) {
      if (port.value("hostPort", 0) != 0) needs["hostPorts"].push_back(port["hostPort"]);
    }
  }
}

void AddMetadata(const kube::Object& pod, Json& needs) {
  for (const char* field : {"labels", "annotations"}) {
    const Json& map = pod.At(std::string("/metadata/") + field);
    if (!map.is_object()) continue;
    for (const auto& [name, value] : map.items()) {
      const bool is_read = std::any_of(kOfSchedulers.begin(), kOfSchedulers.end(),
                                       [&](std::string_view word) { return name.find(word) != std::string::npos; });
      if (is_read) needs[field][name] = value;
    }
  }
}

// Without those that keep pods off nodes with a notice, which the operator adds (KeepOff).
Json NodeTerms(Json terms) {
  if (!terms.is_array()) return Json::array();
  for (Json& term : terms) {
    if (!term.is_object() || !term.contains("matchFields") || !term["matchFields"].is_array()) continue;
    Json kept = Json::array();
    for (const Json& field : term["matchFields"]) {
      if (field.value("operator", "") != "NotIn") kept.push_back(field);
    }
    if (kept.empty()) {
      term.erase("matchFields");
    } else {
      term["matchFields"] = std::move(kept);
    }
  }
  std::erase_if(terms.get_ref<Json::array_t&>(), [](const Json& term) { return term.empty(); });
  return terms;
}

}  // namespace

std::string OtherNeedsOf(const kube::Object& pod) {
  Json needs = Json::object();
  const Json& spec = pod.At("/spec");
  if (spec.is_object()) {
    for (const auto& [field, value] : spec.items()) {
      if (!IsHarmless(field) && field != "affinity" && !IsDefault(field, value)) needs[field] = value;
    }
  }
  if (const Json affinity = AffinityOf(pod.At("/spec/affinity")); !affinity.empty()) needs["affinity"] = affinity;
  for (const Json& volume : pod.At("/spec/volumes")) {
    if (!IsOfAnyNode(volume)) needs["volumes"].push_back(volume);
  }
  AddPorts(pod.At("/spec/containers"), needs);
  AddPorts(pod.At("/spec/initContainers"), needs);
  AddMetadata(pod, needs);
  // An autoscaler brings no nodes for pods that every other pod may displace.
  if (const Json& priority = pod.At("/spec/priority"); priority.is_number() && priority < 0)
    needs["priority"] = priority;
  return needs.empty() ? "" : base::HashHex(kube::Dump(needs));
}

bool AsksOnlyForUnit(const kube::Object& pod, const ResourcePool& pool, const std::string& zone) {
  kube::Object unit;
  unit.mutable_json()["spec"] = UnitPodSpec(pool);
  unit.mutable_json()["metadata"] = pool.pod_template.metadata;
  const std::string needs = OtherNeedsOf(unit);
  PinToZone(zone, unit.mutable_json()["spec"]);
  const PodDemand plain = DemandOf(unit);
  const PodDemand asked = DemandOf(pod);
  if (pod.annotation(kNeedsAnnotation) != needs) return false;
  if (asked.node_selector != plain.node_selector || NodeTerms(asked.node_terms) != NodeTerms(plain.node_terms)) {
    return false;
  }
  const Amounts& requests = asked.amounts.requests;
  return std::all_of(requests.begin(), requests.end(), [&](const auto& request) {
    return request.second <= AmountOf(plain.amounts.requests, request.first);
  });
}

}  // namespace medley::ops
