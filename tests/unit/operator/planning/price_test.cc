#include <gtest/gtest.h>

#include "operator/planning/scheduler_client.h"

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

}  // namespace
}  // namespace medley::ops
