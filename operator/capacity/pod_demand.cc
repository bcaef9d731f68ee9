#include "operator/capacity/pod_demand.h"

#include "operator/api/pool_zones.h"

namespace medley::ops {
namespace {

using kube::Json;

const Json& Field(const Json& object, const char* name) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

Amounts RequestsOf(const Json& resources) {
  Amounts requests = ReadAmounts(Field(resources, "requests"));
  for (const auto& [name, amount] : ReadAmounts(Field(resources, "limits"))) {
    requests.emplace(name, amount);
  }
  return requests;
}

Amounts LimitsOf(const Json& resources) { return ReadAmounts(Field(resources, "limits")); }

// During a resize the pod holds what is allocated to it until the resize has finished.
void RaiseToAllocated(const Json& statuses, const Json& container, Amounts& requests) {
  if (!statuses.is_array()) return;
  for (const Json& status : statuses) {
    if (Field(status, "name") != Field(container, "name")) continue;
    RaiseTo(ReadAmounts(Field(status, "allocatedResources")), requests);
  }
}

bool IsSidecar(const Json& init_container) { return Field(init_container, "restartPolicy") == "Always"; }

// `read` returns the amounts of one container.
template <typename Read>
Amounts Sum(const kube::Object& pod, const Read& read) {
  Amounts sum;
  for (const Json& container : pod.At("/spec/containers")) {
    Add(read(container, "/status/containerStatuses"), sum);
  }
  Amounts sidecars;  // that run beside the current init container
  Amounts largest;
  for (const Json& container : pod.At("/spec/initContainers")) {
    const Amounts own = read(container, "/status/initContainerStatuses");
    Amounts during = sidecars;
    Add(own, during);
    if (IsSidecar(container)) {
      Add(own, sum);
      sidecars = during;
    }
    RaiseTo(during, largest);
  }
  RaiseTo(largest, sum);
  return sum;
}

bool IsPodLevel(const std::string& name) {
  return name == "cpu" || name == "memory" || name.rfind("hugepages-", 0) == 0;
}

void ReplaceByPodLevel(const Amounts& pod_level, Amounts& sum) {
  for (const auto& [name, amount] : pod_level) {
    if (IsPodLevel(name)) sum[name] = amount;
  }
}

bool NamesCpuOrMemory(const Amounts& amounts) {
  return AmountOf(amounts, "cpu") > 0 || AmountOf(amounts, "memory") > 0;
}

}  // namespace

PodAmounts AmountsOf(const kube::Object& pod) {
  PodAmounts amounts;
  amounts.requests = Sum(pod, [&](const Json& container, const char* statuses) {
    Amounts requests = RequestsOf(Field(container, "resources"));
    RaiseToAllocated(pod.At(statuses), container, requests);
    return requests;
  });
  amounts.limits = Sum(pod, [](const Json& container, const char*) { return LimitsOf(Field(container, "resources")); });
  const Json& pod_level = pod.At("/spec/resources");
  ReplaceByPodLevel(RequestsOf(pod_level), amounts.requests);
  ReplaceByPodLevel(LimitsOf(pod_level), amounts.limits);
  for (const auto& [name, amount] : ReadAmounts(pod.At("/spec/overhead"))) {
    amounts.requests[name] += amount;
    // A resource without a limit is left without one.
    const auto limit = amounts.limits.find(name);
    if (limit != amounts.limits.end()) limit->second += amount;
  }
  return amounts;
}

void ApplyLimitRange(const kube::Object& limit_range, kube::Object& pod) {
  Json& spec = pod.mutable_json()["spec"];
  const auto fill = [](const Json& defaults, Json& resources, const char* what) {
    if (!defaults.is_object()) return;
    for (const auto& [name, amount] : defaults.items()) {
      if (Field(Field(resources, what), name.c_str()).is_null()) resources[what][name] = amount;
    }
  };
  for (const Json& entry : limit_range.At("/spec/limits")) {
    if (Field(entry, "type") != "Container") continue;
    for (const char* list : {"containers", "initContainers"}) {
      if (Field(spec, list).is_null()) continue;
      for (Json& container : spec[list]) {
        Json& resources = container["resources"];
        fill(Field(resources, "limits"), resources, "requests");
        fill(Field(entry, "default"), resources, "limits");
        fill(Field(entry, "defaultRequest"), resources, "requests");
        fill(Field(entry, "default"), resources, "requests");
      }
    }
  }
}

std::string PodDemand::Fingerprint() const {
  return Json::array({WriteAmounts(amounts.requests), node_selector, node_terms, tolerations, node_name}).dump();
}

PodDemand DemandOf(const kube::Object& pod) {
  PodDemand demand;
  demand.amounts = AmountsOf(pod);
  if (pod.At("/spec/nodeSelector").is_object()) demand.node_selector = pod.At("/spec/nodeSelector");
  demand.node_terms = pod.At(
      "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
      "nodeSelectorTerms");
  if (pod.At("/spec/tolerations").is_array()) demand.tolerations = pod.At("/spec/tolerations");
  demand.node_name = pod.String("/spec/nodeName");
  demand.priority_class = pod.String("/spec/priorityClassName");
  demand.terminating = pod.At("/spec/activeDeadlineSeconds").is_number();
  demand.best_effort = !NamesCpuOrMemory(demand.amounts.requests) && !NamesCpuOrMemory(demand.amounts.limits);
  return demand;
}

std::string PinnedZone(const PodDemand& demand) {
  const Json& selected = Field(demand.node_selector, kZoneLabel);
  if (selected.is_string()) return selected.get<std::string>();
  if (!demand.node_terms.is_array() || demand.node_terms.empty()) return "";
  std::string zone;
  for (const Json& term : demand.node_terms) {
    std::string of_term;
    const Json& expressions = Field(term, "matchExpressions");
    if (!expressions.is_array()) return "";
    for (const Json& expression : expressions) {
      const Json& values = Field(expression, "values");
      const bool pins = Field(expression, "key") == kZoneLabel && Field(expression, "operator") == "In";
      if (pins && values.is_array() && values.size() == 1 && values[0].is_string()) of_term = values[0];
    }
    if (of_term.empty() || (!zone.empty() && zone != of_term)) return "";
    zone = of_term;
  }
  return zone;
}

}  // namespace medley::ops
