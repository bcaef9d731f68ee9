#include "operator/planning/pod_prices.h"

#include <algorithm>

#include "common/base/quantity.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"

namespace medley::ops {
namespace {

bool Selects(const std::map<std::string, std::string>& selector, const NodeLabels& node) {
  return std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
    const auto label = node.find(wanted.first);
    return label != node.end() && label->second == wanted.second;
  });
}

// 0: absent.
double Amount(const kube::Json& value) {
  if (value.is_null()) return 0;
  return base::ParseQuantity(value.is_string() ? value.get<std::string>() : value.dump()).value_or(0);
}

}  // namespace

double PartOfUnit(const kube::Object& pod, const ResourcePool& pool) {
  double part = 0;
  for (const char* resource : {"cpu", "memory"}) {
    const auto of_unit = pool.unit_resources.find(resource);
    const double unit = of_unit == pool.unit_resources.end() ? 0 : Amount(of_unit->second);
    double requested = 0;
    for (const kube::Json& container : pod.At("/spec/containers")) {
      const kube::Json::json_pointer request("/resources/requests/" + std::string(resource));
      if (container.is_object() && container.contains(request)) requested += Amount(container.at(request));
    }
    if (unit > 0) part = std::max(part, requested / unit);
  }
  return part;
}

const ResourcePool* PoolOfNode(const NodeLabels& node, const std::vector<ResourcePool>& pools) {
  const ResourcePool* best = nullptr;
  for (const ResourcePool& pool : pools) {
    const size_t labels = pool.node_selector.size();
    if (labels == 0 || !Selects(pool.node_selector, node)) continue;
    const bool better = best == nullptr || labels > best->node_selector.size() ||
                        (labels == best->node_selector.size() && pool.name < best->name);
    if (better) best = &pool;
  }
  return best;
}

PodPrices::Price PodPrices::Of(const kube::Object& pod, const NodeLabels& node) {
  const auto zone = node.find(kZoneLabel);
  const std::string in = zone == node.end() ? "" : zone->second;
  if (pod.label(kRoleLabel) == ToString(Role::kCoordinator)) {
    const ResourcePool* pool = PoolOfNode(node, pools_);
    if (pool == nullptr) return {};
    const double part = PartOfUnit(pod, *pool);
    return {"", part, part * OfUnit(*pool, in)};
  }
  const std::string name = pod.label(kPoolLabel);
  const auto pool = std::find_if(pools_.begin(), pools_.end(), [&](const ResourcePool& p) { return p.name == name; });
  if (pool == pools_.end()) return {};
  return {name, 1, OfUnit(*pool, in)};
}

double PodPrices::OfUnit(const ResourcePool& pool, const std::string& zone) {
  const auto [known, is_new] = known_.try_emplace({pool.name, zone}, 0);
  if (is_new) {
    PoolZones zones;
    if (!zone.empty()) zones.zones.insert(zone);
    if (const auto price = PriceOf(pool, catalog_, zones)) known->second = price->usd_per_unit_hour;
  }
  return known->second;
}

}  // namespace medley::ops
