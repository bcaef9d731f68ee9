#include "operator/controllers/capacity.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "common/base/quantity.h"
#include "operator/api/resources.h"

namespace medley::ops {
namespace {

using Amounts = std::map<std::string, double>;
constexpr double kPlenty = 1e9;
constexpr double kRound = 1e-9;  // of sums of quantities

double Quantity(const kube::Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return 0;
  const auto parsed = base::ParseQuantity(value.get<std::string>());
  return parsed.ok() ? *parsed : 0;
}

Amounts Read(const kube::Json& map) {
  Amounts amounts;
  if (!map.is_object()) return amounts;
  for (const auto& [name, value] : map.items()) amounts[name] = Quantity(value);
  return amounts;
}

Amounts UnitOf(const ResourcePool& pool) {
  Amounts unit;
  for (const auto& [name, text] : pool.unit_resources) {
    const auto parsed = base::ParseQuantity(text);
    if (parsed.ok() && *parsed > 0) unit[name] = *parsed;
  }
  return unit;
}

bool Terminated(const kube::Object& pod) {
  const std::string phase = pod.String("/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

bool IsUnitOf(const kube::Object& pod, const ResourcePool& pool) {
  if (Terminated(pod) || pod.label(kPoolLabel) != pool.name) return false;
  const std::string role = pod.label(kRoleLabel);
  return role == "trainer" || role == "server";
}

bool BelongsTo(const kube::Object& pod, const kube::Key& job) {
  return pod.key().ns == job.ns && pod.label(kJobNameLabel) == job.name;
}

// Requests of the pods on each node, but for those that `ignore` names.
std::map<std::string, Amounts> UsedByNode(const ClusterState& cluster,
                                          const std::function<bool(const kube::Object&)>& ignore) {
  std::map<std::string, Amounts> used;
  for (const kube::ObjectPtr& pod : cluster.pods) {
    const std::string node = pod->String("/spec/nodeName");
    if (node.empty() || Terminated(*pod) || ignore(*pod)) continue;
    for (const kube::Json& container : pod->At("/spec/containers")) {
      const kube::Json::json_pointer requests("/resources/requests");
      if (!container.is_object() || !container.contains(requests)) continue;
      for (const auto& [name, amount] : Read(container.at(requests))) used[node][name] += amount;
    }
    used[node]["pods"] += 1;
  }
  return used;
}

double FitsOn(const kube::Object& node, const Amounts& unit, const Amounts& used) {
  const Amounts allocatable = Read(node.At("/status/allocatable"));
  double fits = kPlenty;
  const auto bound = [&](const std::string& name, double wanted) {
    const auto have = allocatable.find(name);
    if (have == allocatable.end()) {
      if (name != "cpu" && name != "memory" && name != "pods") fits = 0;
      return;
    }
    const auto taken = used.find(name);
    const double left = have->second - (taken == used.end() ? 0 : taken->second);
    fits = std::min(fits, std::floor(left / wanted + kRound));
  };
  for (const auto& [name, wanted] : unit) bound(name, wanted);
  bound("pods", 1);
  return std::max(0.0, fits);
}

int OnNodes(const ResourcePool& pool, const ClusterState& cluster,
            const std::map<std::string, Amounts>& used) {
  const Amounts unit = UnitOf(pool);
  const Amounts nothing;
  double sum = 0;
  for (const kube::ObjectPtr& node : cluster.nodes) {
    if (!NodeServes(*node, pool)) continue;
    const auto found = used.find(node->key().name);
    sum += FitsOn(*node, unit, found == used.end() ? nothing : found->second);
  }
  return static_cast<int>(std::min(sum, kPlenty));
}

// Units that the quotas of the namespace leave, with what `own` pods use given back.
double QuotaUnits(const ClusterState& cluster, const std::string& ns, const Amounts& unit,
                  int own) {
  double units = kPlenty;
  for (const kube::ObjectPtr& quota : cluster.quotas) {
    if (quota->key().ns != ns) continue;
    const kube::Json& hard =
        quota->At("/status/hard").is_object() ? quota->At("/status/hard") : quota->At("/spec/hard");
    const Amounts used = Read(quota->At("/status/used"));
    for (const auto& [key, limit] : Read(hard)) {
      std::string name = key;
      for (const char* prefix : {"requests.", "limits."}) {
        if (name.rfind(prefix, 0) == 0) name = name.substr(std::string_view(prefix).size());
      }
      const auto asked = unit.find(name);
      const double wanted = name == "pods" || name == "count/pods" ? 1
                            : asked == unit.end()                  ? 0
                                                                   : asked->second;
      if (wanted <= 0) continue;
      const auto taken = used.find(key);
      const double left = limit - (taken == used.end() ? 0 : taken->second) + own * wanted;
      units = std::min(units, std::max(0.0, std::floor(left / wanted + kRound)));
    }
  }
  return units;
}

}  // namespace

bool NodeServes(const kube::Object& node, const ResourcePool& pool) {
  if (node.deleting() || node.At("/spec/unschedulable") == true) return false;
  for (const auto& [key, value] : pool.node_selector) {
    if (node.label(key) != value) return false;
  }
  for (const kube::Json& condition : node.At("/status/conditions")) {
    if (condition.value("type", "") == "Ready" && condition.value("status", "") != "True")
      return false;
  }
  return true;
}

PoolUnits UnitsOf(const ResourcePool& pool, const ClusterState& cluster) {
  PoolUnits units;
  units.limit = pool.limit;
  units.used = static_cast<int>(
      std::count_if(cluster.pods.begin(), cluster.pods.end(),
                    [&](const kube::ObjectPtr& pod) { return IsUnitOf(*pod, pool); }));
  const bool autoscaled = pool.scaling == PoolScaling::kAutoscaled;
  units.capacity = OnNodes(pool, cluster, {});
  const int on_nodes =
      autoscaled
          ? pool.limit
          : OnNodes(pool, cluster, UsedByNode(cluster, [](const kube::Object&) { return false; }));
  units.free = std::max(0, std::min(pool.limit - units.used, on_nodes));
  units.capacity = std::min(units.capacity, std::numeric_limits<int>::max());
  return units;
}

int UnitsForJob(const ResourcePool& pool, const ClusterState& cluster, const kube::Key& job) {
  int own = 0;
  int others = 0;
  for (const kube::ObjectPtr& pod : cluster.pods) {
    if (!IsUnitOf(*pod, pool)) continue;
    (BelongsTo(*pod, job) ? own : others) += 1;
  }
  // What the job itself runs on the nodes can be rearranged; its coordinator stays.
  const auto own_units = [&](const kube::Object& pod) {
    return BelongsTo(pod, job) && pod.label(kRoleLabel) != "coordinator";
  };
  int units = std::max(0, pool.limit - others);
  if (pool.scaling == PoolScaling::kNodes) {
    units = std::min(units, OnNodes(pool, cluster, UsedByNode(cluster, own_units)));
  }
  return static_cast<int>(std::min<double>(units, QuotaUnits(cluster, job.ns, UnitOf(pool), own)));
}

}  // namespace medley::ops
