#include <gtest/gtest.h>

#include "operator/planning/pool_prices.h"

namespace medley::ops {
namespace {

PriceCatalog Catalog() {
  PriceCatalog catalog;
  catalog.revision = 3;
  catalog.price_time = "2026-11-21T07:15:00Z";
  PriceEntry spot;
  spot.offering = model::Offering{"aws", "r", "z", "p3", "spot", 1};
  spot.usd_per_instance_hour = 8;
  spot.source = "feed";
  PriceEntry named;
  named.resource_type = "lab";
  named.usd_per_unit_hour = 0.5;
  catalog.entries = {spot, named};
  return catalog;
}

TEST(PriceTest, OwnThenOfferingThenName) {
  const PriceCatalog catalog = Catalog();
  ResourcePool pool;
  pool.name = "gpu";
  EXPECT_FALSE(PriceOf(pool, &catalog).has_value());
  pool.offering = model::Offering{"aws", "r", "z", "p3", "spot", 4};
  EXPECT_DOUBLE_EQ(PriceOf(pool, &catalog)->usd_per_unit_hour, 2);  // four units make an instance
  EXPECT_EQ(PriceOf(pool, &catalog)->source, "feed");
  pool.offering->capacity_type = "on-demand";
  EXPECT_FALSE(PriceOf(pool, &catalog).has_value());
  pool.name = "lab";
  EXPECT_DOUBLE_EQ(PriceOf(pool, &catalog)->usd_per_unit_hour, 0.5);
  pool.usd_per_unit_hour = 7;
  EXPECT_EQ(PriceOf(pool, nullptr)->source, "spec");
}

struct ZonePrice {
  const char* zone;
  double usd;
  bool available = true;
};

PriceCatalog Zonal(std::vector<ZonePrice> prices) {
  PriceCatalog catalog;
  catalog.revision = 7;
  for (const ZonePrice& price : prices) {
    PriceEntry entry;
    entry.offering = model::Offering{"aws", "us-east-1", price.zone, "p3.2xlarge", "spot", 1};
    entry.usd_per_instance_hour = price.usd;
    entry.available = price.available;
    catalog.entries.push_back(entry);
  }
  return catalog;
}

// As in docs/use/pools-and-prices.md.
ResourcePool V100() {
  ResourcePool pool;
  pool.name = "v100-spot";
  pool.offering = model::Offering{"aws", "us-east-1", "", "p3.2xlarge", "spot", 1};
  return pool;
}

constexpr auto kAnyUnits = [](const std::string&) { return true; };

TEST(PriceTest, APoolWithoutAZoneTakesTheCheapestAvailableZone) {
  const PriceCatalog catalog = Zonal({{"a", 3}, {"b", 2}, {"c", 1, false}});
  const auto price = PriceOf(V100(), &catalog);
  ASSERT_TRUE(price.has_value());
  EXPECT_EQ(price->usd_per_unit_hour, 2);
  EXPECT_EQ(price->zone, "b");
  EXPECT_EQ(price->pin, "");  // no node carries the label
}

TEST(PriceTest, PodsArePinnedWhereNodesCarryTheLabel) {
  const PriceCatalog catalog = Zonal({{"a", 3}, {"b", 2}});
  EXPECT_EQ(PriceOf(V100(), &catalog, {true, {}})->pin, "b");
  EXPECT_EQ(PriceOf(V100(), &catalog, {true, {"a"}})->pin, "a") << "the pool has nodes in zone a only";
  EXPECT_FALSE(PriceOf(V100(), &catalog, {true, {"c"}}).has_value());
  ResourcePool selected = V100();
  selected.node_selector[kZoneLabel] = "a";
  const auto price = PriceOf(selected, &catalog, {true, {}});
  EXPECT_EQ(price->usd_per_unit_hour, 3);
  EXPECT_EQ(price->zone, "a");
  EXPECT_EQ(price->pin, "") << "the nodeSelector says it already";
  ResourcePool fixed = V100();
  fixed.usd_per_unit_hour = 1;
  EXPECT_EQ(PriceOf(fixed, &catalog, {true, {"a"}})->pin, "");
}

TEST(PriceTest, ACatalogWithoutZonesPinsNothing) {
  const PriceCatalog regional = Zonal({{"", 2}});
  const auto price = PriceOf(V100(), &regional, {true, {"a", "b"}});
  ASSERT_TRUE(price.has_value());
  EXPECT_EQ(price->zone, "");
  EXPECT_EQ(price->pin, "");
  // A zone with a price of its own makes a difference between the zones.
  const PriceCatalog mixed = Zonal({{"", 2}, {"a", 3}});
  EXPECT_EQ(PriceOf(V100(), &mixed, {true, {"a", "b"}})->pin, "b");
}

TEST(PriceTest, WhyUnpricedTellsUnknownFromUnavailable) {
  const PriceCatalog catalog = Zonal({{"a", 3, false}});
  EXPECT_FALSE(PriceOf(V100(), &catalog)->available);
  EXPECT_NE(WhyUnpriced(V100(), catalog).find("not as available"), std::string::npos);
  EXPECT_NE(WhyUnpriced(V100(), PriceCatalog()).find("has no offering that matches aws/us-east-1//p3.2xlarge/spot"),
            std::string::npos);
}

struct Kept {
  const char* name;
  std::vector<ZonePrice> catalog;
  ZoneChoice choice;
  double usd = 0;  // 0: unpriced
  std::string pin;
  double paid = 0;
  double cheaper = 0;  // 0: none
  bool only_held = false;
};

TEST(PriceForJobTest, AJobKeepsItsZone) {
  const HeldUnits in_a{"a", 2.5};
  const std::vector<Kept> cases = {
      {"a first plan takes the cheapest", {{"a", 3}, {"b", 2}}, {}, 2, "b", 2},
      {"a running job stays, and the other zone is a candidate", {{"a", 3}, {"b", 2}}, {in_a}, 3, "a", 3, 2},
      {"the candidate", {{"a", 3}, {"b", 2}}, {in_a, false}, 2, "b", 3},
      {"its own zone is the cheapest", {{"a", 2}, {"b", 3}}, {in_a}, 2, "a", 2},
      {"an equal price is no candidate", {{"a", 2}, {"b", 2}}, {in_a}, 2, "a", 2},
      {"the zone is unavailable", {{"a", 1, false}, {"b", 2}}, {in_a}, 2, "b", 1},
      {"the zone is no longer in the catalog", {{"b", 2}}, {in_a}, 2, "b", 2.5},
      {"every zone is unavailable", {{"a", 3, false}, {"b", 2, false}}, {in_a}, 3, "a", 3, 0, true},
      {"a first plan while every zone is unavailable", {{"a", 3, false}, {"b", 2, false}}, {}, 2, "b", 2, 0, true},
      {"pods run unpinned, and nothing is available", {{"a", 3, false}}, {HeldUnits{"", 3}}, 3, "", 3, 0, true},
      {"the kept zone is unknown, the others are unavailable", {{"b", 2, false}}, {in_a}, 2, "a", 2.5, 0, true},
      {"the offering is no longer in the catalog", {}, {in_a}},
      {"a price of the region holds in the kept zone", {{"", 2}}, {in_a}, 2, "a", 2},
      {"its pods found no node there", {{"a", 1}, {"b", 2}}, {in_a, true, {"a"}}, 2, "b", 1},
      {"nor anywhere else", {{"a", 1}, {"b", 2}}, {in_a, true, {"a", "b"}}, 1, "a", 1},
      {"pods that run unpinned stay so", {{"a", 3}, {"b", 2}}, {HeldUnits{"", 3}}, 2, "", 2},
  };
  for (const Kept& c : cases) {
    SCOPED_TRACE(c.name);
    const PriceCatalog catalog = Zonal(c.catalog);
    const auto price = PriceForJob(V100(), &catalog, {true, {}}, c.choice, kAnyUnits);
    ASSERT_EQ(price.has_value(), c.usd > 0);
    if (!price) continue;
    EXPECT_EQ(price->price.usd_per_unit_hour, c.usd);
    EXPECT_EQ(price->price.pin, c.pin);
    EXPECT_EQ(price->paid, c.paid);
    EXPECT_EQ(price->cheaper ? price->cheaper->usd_per_unit_hour : 0, c.cheaper);
    EXPECT_EQ(price->only_held, c.only_held);
  }
}

TEST(PriceForJobTest, TwoJobsHoldThePoolInDifferentZones) {
  const PriceCatalog catalog = Zonal({{"a", 3}, {"b", 2}});
  const auto first = PriceForJob(V100(), &catalog, {true, {"a", "b"}}, {HeldUnits{"a", 3}}, kAnyUnits);
  const auto second = PriceForJob(V100(), &catalog, {true, {"a", "b"}}, {HeldUnits{"b", 2}}, kAnyUnits);
  EXPECT_EQ(first->price.pin, "a");
  EXPECT_EQ(second->price.pin, "b");
  // A third one finds zone b full.
  const auto only_a = [](const std::string& zone) { return zone == "a"; };
  const auto third = PriceForJob(V100(), &catalog, {true, {"a", "b"}}, {}, only_a);
  EXPECT_EQ(third->price.pin, "a");
  const auto fourth = PriceForJob(V100(), &catalog, {true, {"a", "b"}}, {}, [](const std::string&) { return false; });
  EXPECT_EQ(fourth->price.pin, "b") << "every zone is full: the cheapest";
}

TEST(PriceForJobTest, AZoneWithoutUnitsForTheJobIsNotKept) {
  const PriceCatalog catalog = Zonal({{"a", 2}, {"b", 3}});
  const auto only_b = [](const std::string& zone) { return zone == "b"; };
  const auto price = PriceForJob(V100(), &catalog, {true, {"a", "b"}}, {HeldUnits{"a", 2}}, only_b);
  EXPECT_EQ(price->price.pin, "b");
  EXPECT_EQ(price->paid, 2);
}

TEST(PriceForJobTest, AnEditOfThePool) {
  const PriceCatalog catalog = Zonal({{"a", 3}, {"b", 2}});
  const ZoneChoice held{HeldUnits{"a", 2.5}};
  ResourcePool other = V100();
  other.offering->zone = "b";  // now it must be zone b
  const auto moved = PriceForJob(other, &catalog, {true, {}}, held, kAnyUnits);
  EXPECT_EQ(moved->price.pin, "b");
  EXPECT_EQ(moved->paid, 2.5);
  ResourcePool fixed = V100();
  fixed.offering.reset();
  fixed.usd_per_unit_hour = 9;
  const auto own = PriceForJob(fixed, nullptr, {true, {}}, held, kAnyUnits);
  EXPECT_EQ(own->price.pin, "");
  EXPECT_EQ(own->paid, 9);
}

}  // namespace
}  // namespace medley::ops
