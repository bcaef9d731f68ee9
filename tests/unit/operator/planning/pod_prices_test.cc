// Tests what pods cost per hour.
#include "operator/planning/pod_prices.h"

#include <gtest/gtest.h>

namespace medley::ops {
namespace {

ResourcePool Pool(const std::string& name, double usd, const std::map<std::string, std::string>& selector) {
  ResourcePool pool;
  pool.name = name;
  pool.usd_per_unit_hour = usd;
  pool.node_selector = selector;
  pool.unit_resources = {{"cpu", "2"}, {"memory", "4Gi"}};
  return pool;
}

kube::Object Pod(const std::string& role, const std::string& pool, const std::string& cpu, const std::string& memory) {
  return kube::Object(kube::Json{
      {"metadata", {{"labels", {{"medley.dev/role", role}, {"medley.dev/pool", pool}}}}},
      {"spec",
       {{"containers", kube::Json::array({{{"resources", {{"requests", {{"cpu", cpu}, {"memory", memory}}}}}}})}}}});
}

class PodPricesTest : public testing::Test {
 protected:
  std::vector<ResourcePool> pools_ = {Pool("a", 1, {{"kind", "old"}}), Pool("b", 4, {{"kind", "old"}, {"disk", "ssd"}}),
                                      Pool("everywhere", 9, {})};
  PodPrices prices_{pools_, nullptr};
};

TEST_F(PodPricesTest, AMemberAndAProfilerCostAUnitOfTheirPool) {
  EXPECT_DOUBLE_EQ(prices_.Of(Pod("trainer", "a", "2", "4Gi"), {{"kind", "old"}}).usd_per_hour, 1);
  EXPECT_DOUBLE_EQ(prices_.Of(Pod("profiler", "b", "2", "4Gi"), {}).usd_per_hour, 4);
  EXPECT_DOUBLE_EQ(prices_.Of(Pod("server", "removed", "2", "4Gi"), {}).usd_per_hour, 0);
}

TEST_F(PodPricesTest, ACoordinatorCostsItsPartOfAUnitOfThePoolOfItsNode) {
  const kube::Object coordinator = Pod("coordinator", "", "100m", "1Gi");
  EXPECT_DOUBLE_EQ(prices_.Of(coordinator, {{"kind", "old"}}).usd_per_hour, 0.25);  // of the memory
  EXPECT_DOUBLE_EQ(prices_.Of(coordinator, {{"kind", "old"}, {"disk", "ssd"}}).usd_per_hour, 1);
  EXPECT_DOUBLE_EQ(prices_.Of(coordinator, {{"kind", "new"}}).usd_per_hour, 0);  // of no pool that selects nodes
  EXPECT_DOUBLE_EQ(prices_.Of(coordinator, {}).usd_per_hour, 0);
}

TEST_F(PodPricesTest, ThePriceIsThatOfTheZoneOfTheNode) {
  PriceCatalog catalog;
  for (const auto& [zone, usd] : {std::pair{"z1", 3.0}, std::pair{"z2", 7.0}}) {
    PriceEntry entry;
    entry.offering = model::Offering{"aws", "r", zone, "p3", "spot", 1};
    entry.usd_per_instance_hour = usd;
    catalog.entries.push_back(entry);
  }
  std::vector<ResourcePool> pools = {Pool("spot", 0, {})};
  pools[0].offering = model::Offering{"aws", "r", "", "p3", "spot", 1};
  PodPrices prices(pools, &catalog);
  const kube::Object pod = Pod("trainer", "spot", "2", "4Gi");
  EXPECT_DOUBLE_EQ(prices.Of(pod, {{"topology.kubernetes.io/zone", "z1"}}).usd_per_hour, 3);
  EXPECT_DOUBLE_EQ(prices.Of(pod, {{"topology.kubernetes.io/zone", "z2"}}).usd_per_hour, 7);
  EXPECT_DOUBLE_EQ(prices.Of(pod, {}).usd_per_hour, 3);  // no node yet: the cheapest
}

}  // namespace
}  // namespace medley::ops
