// The ResourcePools and their outages.
#include "operator/api/validate.h"
#include "operator/capacity/pod_demand.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {

using kube::Json;

void FakeCluster::FailOnPool(const std::string& pool) {
  outages_.Fail(PoolObject(pool), "", PlacedPods(pool), now());
  StoreOutages(pool);
}

kube::Object FakeCluster::PoolObject(const std::string& name) const {
  Json object = Json::parse(R"({"metadata": {}, "spec": {"class": "CPU", "price": {"usdPerUnitHour": "1"},
                                "unit": {"resources": {"cpu": "1"}}}})");
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
  for (const auto& [name, pod] : pods_) {
    const kube::Object object(pod);
    if (object.label("medley.dev/pool") != pool || object.String("/spec/nodeName").empty()) continue;
    placed[object.uid()] = PinnedZone(DemandOf(object));
  }
  return placed;
}

void FakeCluster::StoreOutages(const std::string& pool) { stored_outages_[pool] = outages_.Of(PoolObject(pool)); }

std::optional<ResourcePool> FakeCluster::ValidPool(const std::string& name) const {
  const kube::Object object = PoolObject(name);
  auto pool = ResourcePool::FromObject(object);
  return pool.ok() && ValidateResourcePool(object).empty() ? std::optional(*std::move(pool)) : std::nullopt;
}

}  // namespace medley::ops::lifecycle
