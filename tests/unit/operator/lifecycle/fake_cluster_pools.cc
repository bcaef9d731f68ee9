// The ResourcePools and their outages.
#include "kube/json_access.h"
#include "operator/api/validate.h"
#include "operator/capacity/pod_demand.h"
#include "operator/capacity/unit_needs.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {

using kube::Json;

void FakeCluster::FailOnPool(const std::string& pool) {
  outages_.Fail(PoolObject(pool), "", PlacedPods(pool), now());
  StoreOutages(pool);
}

void FakeCluster::CountNoNode(const ReportNoNode& report) {
  const std::optional<ResourcePool> pool = ValidPool(report.pool);
  if (!pool || pool->scaling != PoolScaling::kAutoscaled) return;
  const auto speaks = [&](const kube::ObjectPtr& pod) { return AsksOnlyForUnit(*pod, *pool, report.zone); };
  if (!std::ranges::any_of(report.pods, speaks)) return;
  outages_.Fail(pool->object, report.zone, PlacedPods(report.pool), now());
  StoreOutages(report.pool);
}

kube::Object FakeCluster::PoolObject(const std::string& name) const {
  static const Json empty = Json::parse(R"({"metadata": {}, "spec": {"class": "CPU", "price": {"usdPerUnitHour": "1"},
                                             "unit": {"resources": {"cpu": "1"}}}})");
  Json object = empty;
  object["metadata"]["name"] = name;
  object["spec"]["limit"] = pools.at(name).limit;
  if (const std::string& timeout = pools.at(name).provision_timeout; !timeout.empty()) {
    object["spec"]["scaling"] = "Autoscaled";
    object["spec"]["provisionTimeout"] = timeout;
  }
  if (const auto stored = stored_outages_.find(name); stored != stored_outages_.end()) {
    object["status"]["outages"] = ToJson(stored->second);
  }
  if (const auto patch = pool_patches.find(name); patch != pool_patches.end()) kube::MergePatch(object, patch->second);
  return kube::Object(object);
}

PoolOutages::Placed FakeCluster::PlacedPods(const std::string& pool) const {
  PoolOutages::Placed placed;
  for (const auto& [name, object] : pods_) {
    if (object.label("medley.dev/pool") != pool) continue;
    if (object.String("/spec/nodeName").empty()) continue;
    placed[object.uid()] = PinnedZone(DemandOf(object));
  }
  return placed;
}

void FakeCluster::StoreOutages(const std::string& pool) { stored_outages_[pool] = outages_.Of(PoolObject(pool)); }

std::optional<ResourcePool> FakeCluster::ValidPool(const std::string& name) const {
  const kube::Object object = PoolObject(name);
  ReadPool& read = read_pools_[name];
  if (read.object != object.json()) {
    auto pool = ResourcePool::FromObject(object);
    const bool valid = pool.ok() && ValidateResourcePool(object).empty();
    read = {object.json(), valid ? std::optional(*std::move(pool)) : std::nullopt};
  }
  return read.pool;
}

int FakeCluster::UnitsOf(const std::string& node) const {
  const auto units = node_units.find(node);
  return units == node_units.end() ? kUnits : units->second;
}

int FakeCluster::FreeUnits(const std::string& pool, const std::string& zone) const {
  int free = 0;
  for (const char* node : kNodesOfPool) {
    const std::string name = pool + "-" + node;
    if (!zone.empty() && zone != ZoneOf(node)) continue;
    free += noticed_nodes.contains(name) || nodes_not_ready.contains(name) ? 0 : UnitsOf(name);
  }
  const std::optional<ResourcePool> valid = ValidPool(pool);
  return valid ? std::min(free, valid->limit) : 0;
}

void FakeCluster::ReadZones(const ZoneChoice& choice, PoolView& view) const {
  const std::string name = view.pool.name;
  const Pool& pool = pools.at(name);
  view.pool.usd_per_unit_hour = 0;
  view.pool.offering = model::Offering{"aws", "r", "", "m5-" + name, "spot", 1};
  PriceCatalog catalog;
  PoolZones zones{true, {}};
  for (const char* node : kNodesOfPool) zones.zones.insert(ZoneOf(node));
  for (const auto& [zone, price] : pool.zone_prices) {
    PriceEntry entry;
    entry.offering = view.pool.offering;
    entry.offering->zone = zone;
    entry.usd_per_instance_hour = price;
    entry.available = !pool.unavailable_zones.contains(zone);
    catalog.entries.push_back(entry);
  }
  const auto has_units = [&](const std::string& zone) { return FreeUnits(name, zone) > 0; };
  const auto price = PriceForJob(view.pool, &catalog, zones, choice, has_units);
  view.usd_per_unit_hour.reset();
  if (!price) return;
  view.usd_per_unit_hour = price->price.usd_per_unit_hour;
  view.paid_usd_per_unit_hour = price->paid;
  if (price->cheaper) view.cheaper_usd_per_unit_hour = price->cheaper->usd_per_unit_hour;
  if (price->only_held) view.only_held = "no offering of the pool is available since noon";
  view.zone = price->price.pin;
  view.units = FreeUnits(name, view.zone);
  view.units_where_held = FreeUnits(name, choice.held ? choice.held->zone : view.zone);
}

}  // namespace medley::ops::lifecycle
