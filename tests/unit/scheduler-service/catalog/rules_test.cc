// Staleness, hysteresis, selectors, overrides, merging and derived resource types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/fake_clock.h"
#include "common/model/planning.h"
#include "scheduler-service/catalog/book.h"
#include "scheduler-service/catalog/catalog.h"
#include "scheduler-service/catalog/testing/scripted_feed.h"

namespace medley::sched {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

TEST(HysteresisTest, BandsAndIntervals) {
  const HysteresisOptions options;
  const base::WallTime then(base::seconds(1'600'000'000));
  const auto publish = [&](double from, double to, base::nanoseconds later) {
    return ShouldPublish(options, from, then, to, then + std::chrono::duration_cast<base::WallTime::duration>(later));
  };
  EXPECT_FALSE(publish(1, 1, hours(1)));
  EXPECT_FALSE(publish(1, 1.02, hours(1)));
  EXPECT_TRUE(publish(1, 1.0201, minutes(10)));
  EXPECT_TRUE(publish(1, 0.9799, minutes(10)));
  EXPECT_FALSE(publish(1, 1.05, minutes(9)));
  EXPECT_TRUE(publish(1, 1.1, base::nanoseconds(0)));  // published at once
  EXPECT_TRUE(publish(1, 0.9, base::nanoseconds(0)));
  EXPECT_FALSE(publish(0.02, 0.0209, hours(1)));  // 4.5 %, but less than 0.001 USD
  EXPECT_TRUE(publish(0.0005, 0.0006, base::nanoseconds(0)));
  EXPECT_TRUE(publish(1, 1.05, -minutes(1)));  // the clock was set back
}

TEST(StalenessTest, LiveCachedFallback) {
  const base::WallTime now(base::seconds(1'600'000'000));
  const auto assess = [&](CatalogEntry entry, base::nanoseconds age, std::optional<double> on_demand) {
    entry.observed_at = now - std::chrono::duration_cast<base::WallTime::duration>(age);
    return Assess({}, entry, hours(2), on_demand, now);
  };
  const CatalogEntry spot = Offer("aws", "r", "", "a", "spot", 2);
  EXPECT_EQ(assess(spot, hours(2), 4.0).quality, Quality::kLive);
  EXPECT_EQ(assess(spot, minutes(121), 4.0).quality, Quality::kCached);
  EXPECT_EQ(assess(spot, hours(6), 4.0).factor, 1);
  EXPECT_EQ(assess(spot, minutes(361), 4.0).quality, Quality::kFallback);
  EXPECT_EQ(assess(spot, minutes(361), 4.0).factor, 1.25);
  EXPECT_EQ(assess(spot, minutes(361), 2.2).factor, 1.1);  // the on-demand price is lower
  EXPECT_EQ(assess(spot, minutes(361), std::nullopt).factor, 1.25);
  EXPECT_EQ(assess(Offer("aws", "r", "", "a", "on-demand", 2), hours(1000), 9.0).quality, Quality::kCached);
  CatalogEntry written = spot;
  written.quality = Quality::kStatic;
  EXPECT_EQ(assess(written, hours(1000), 9.0).quality, Quality::kStatic);
  EXPECT_EQ(Assess({}, spot, base::nanoseconds(0), {}, now).quality, Quality::kLive);
}

TEST(SelectorTest, Patterns) {
  EXPECT_TRUE(FitsPattern("p3.*", "p3.2xlarge"));
  EXPECT_TRUE(FitsPattern("*a*b", "xaabab"));
  EXPECT_FALSE(FitsPattern("*a*b", "xaaba"));
  EXPECT_TRUE(FitsPattern("**", ""));
  EXPECT_FALSE(FitsPattern("p3", "p3."));
  EXPECT_FALSE(Fits({.provider = {"aws"}}, CatalogEntry{.resource_type = "cpu"}));
  EXPECT_TRUE(Fits({.resource_type = {"c*"}}, CatalogEntry{.resource_type = "cpu"}));
}

TEST(OverrideTest, TheLargestMatchingWeightApplies) {
  std::vector<Override> overrides(3);
  overrides[0].match.instance_type = {"p3.*"};
  ASSERT_TRUE(ParseAdjustment("-10%", overrides[0]));
  overrides[1] = {.match = {.instance_type = {"p3.2xlarge"}}, .price = 5, .weight = 1};
  overrides[2].match.provider = {"gcp"};
  ASSERT_TRUE(ParseAdjustment("+0.05", overrides[2]));
  const auto price = [&](CatalogEntry entry) {
    ApplyOverrides(overrides, entry);
    return entry.price_per_instance_hour;
  };
  EXPECT_DOUBLE_EQ(price(Offer("aws", "r", "", "p3.8xlarge", "spot", 8)), 7.2);
  EXPECT_EQ(price(Offer("aws", "r", "", "p3.2xlarge", "spot", 3)), 5);
  EXPECT_DOUBLE_EQ(price(Offer("gcp", "r", "", "n2", "spot", 1)), 1.05);
  EXPECT_EQ(price(Offer("azure", "r", "", "n2", "spot", 1)), 1);
  for (const char* bad : {"10%", "-", "-%", "-100%", "+x", "", "-10%%", "+nan", "--1"}) {
    Override o;
    EXPECT_FALSE(ParseAdjustment(bad, o)) << bad;
  }
}

class BookTest : public testing::Test {
 protected:
  BookTest()
      : book_(Options(), {{"site", 10, {}, {}, true},
                          {"live", 0, hours(2), hours(336), false},
                          {"slow", 5, hours(2), hours(336), false}}) {}
  static BookOptions Options() {
    BookOptions options;
    options.machines[{"aws", "p3.2xlarge"}] = {8, 61.0 * (1 << 30), "v100", 1, 1};
    options.machines[{"aws", "p3.8xlarge"}] = {32, 244.0 * (1 << 30), "v100", 4, 1};
    ResourceRule rule;
    rule.name = "v100";
    rule.cls = "GPU";
    rule.limit = 32;
    rule.match = {.provider = {"aws"}, .capacity_type = {"spot"}, .gpu_model = {"v100"}};
    options.resources = {rule};
    return options;
  }
  static CatalogEntry P3(const std::string& zone, const std::string& capacity, double price,
                         const std::string& type = "p3.2xlarge") {
    return Offer("aws", "us-east-1", zone, type, capacity, price);
  }
  void Take(size_t source, std::vector<CatalogEntry> entries) {
    book_.Take(source, {std::move(entries), false, {}}, clock_.Now());
  }
  CatalogEntry Find(const std::string& key) {
    for (const CatalogEntry& entry : book_.Publish(clock_.Now())) {
      if (KeyOf(entry) == key || entry.resource_type == key) return entry;
    }
    return {};
  }
  base::FakeClock clock_;
  PriceBook book_;
};

TEST_F(BookTest, TheCheapestAvailableOfferingMakesTheType) {
  Take(1, {P3("us-east-1a", "spot", 1), P3("us-east-1b", "spot", 0.9),
           P3("", "spot", 0.1),  // zonal prices replace the regional one
           P3("", "spot", 3.2, "p3.8xlarge"), P3("", "on-demand", 3.06)});
  CatalogEntry v100 = Find("v100");
  EXPECT_DOUBLE_EQ(v100.price_per_unit_hour, 0.8);
  EXPECT_EQ(v100.offering->instance_type, "p3.8xlarge");
  EXPECT_EQ(v100.offering->units_per_instance, 4);
  EXPECT_EQ(v100.limit, 32);
  CatalogEntry unavailable = P3("", "spot", 0, "p3.8xlarge");
  unavailable.available = false;
  unavailable.unavailable_until = clock_.Now() + minutes(3);
  Take(2, {P3("", "spot", 3.2, "p3.8xlarge")});
  Take(2, {unavailable});  // one source is enough to make it unavailable
  EXPECT_EQ(Find("v100").offering->zone, "us-east-1b");
  clock_.Advance(minutes(4));
  EXPECT_EQ(Find("v100").offering->instance_type, "p3.8xlarge");
}

TEST_F(BookTest, UnknownSpotPricesDefaultToOnDemand) {
  Take(1, {P3("", "on-demand", 3.06)});
  const CatalogEntry v100 = Find("v100");
  EXPECT_EQ(v100.quality, Quality::kDefault);
  EXPECT_EQ(v100.price_per_unit_hour, 3.06);
  Catalog catalog{1, "", book_.Publish(clock_.Now())};
  model::PlanRequest request;
  request.resources = {{"x"}, {"v100"}};
  request.resources[0].offering = model::Offering{"aws", "us-east-1", "us-east-1a", "p3.2xlarge", "spot", 1};
  ResolvePrices(catalog, request);
  EXPECT_EQ(request.resources[0].price_per_unit_hour, 3.06);
  EXPECT_EQ(request.resources[1].price_per_unit_hour, 3.06);
  EXPECT_EQ(Find("nothing").resource_type, "");  // without an offering there is no entry, and never a price of 0
}

TEST_F(BookTest, PriorityWinsUnlessItIsAFallback) {
  Take(1, {P3("", "spot", 1)});
  Take(2, {P3("", "spot", 2), P3("", "on-demand", 3.06)});
  EXPECT_EQ(Find("v100").price_per_unit_hour, 2);
  for (int hour = 0; hour < 7; ++hour) {  // "slow" stops answering
    clock_.Advance(hours(1));
    Take(1, {P3("", "spot", 1)});
    EXPECT_EQ(Find("v100").quality, hour < 2 ? Quality::kLive : hour < 6 ? Quality::kCached : Quality::kLive) << hour;
    EXPECT_EQ(Find("v100").price_per_unit_hour, hour < 6 ? 2 : 1) << hour;
  }
  clock_.Advance(hours(7));  // now "live" stops too: the fallback of the preferred source
  EXPECT_EQ(Find("v100").quality, Quality::kFallback);
  EXPECT_DOUBLE_EQ(Find("v100").price_per_unit_hour, 2.5);
  Take(0, {P3("", "spot", 0.7)});  // static prices are published unchanged
  EXPECT_EQ(Find("v100").price_per_unit_hour, 0.7);
}

TEST_F(BookTest, SmallChangesAreNotPublished) {
  Take(1, {P3("", "spot", 1)});
  EXPECT_EQ(Find("v100").price_per_unit_hour, 1);
  Take(1, {P3("", "spot", 1.05)});
  EXPECT_EQ(Find("v100").price_per_unit_hour, 1);
  clock_.Advance(minutes(10));  // published when the interval has passed, without a new answer
  EXPECT_EQ(Find("v100").price_per_unit_hour, 1.05);
  Take(1, {P3("", "spot", 2)});
  EXPECT_EQ(Find("v100").price_per_unit_hour, 2);
  Take(0, {Offer("aws", "us-east-1", "", "m", "spot", 1)});
  Take(0, {Offer("aws", "us-east-1", "", "m", "spot", 1.001)});
}

TEST(PriceHistoryTest, IsBounded) {
  PriceHistory history({.max_points_per_key = 100, .max_points = 150, .max_age = hours(24)});
  base::WallTime now(base::seconds(1'600'000'000));
  CatalogEntry a = Offer("aws", "r", "", "a", "spot", 1), b = Offer("aws", "r", "", "b", "spot", 1);
  for (int i = 0; i < 1000; ++i) {
    now += base::seconds(10);
    a.price_per_instance_hour = 1 + i;
    b.price_per_instance_hour = 1 + i / 2;
    history.Record({a, b}, i, now);
    ASSERT_LE(history.size(), 150u);
  }
  const PriceSeries series = history.Series(a, base::WallTime());
  EXPECT_EQ(series.points.back().price_per_instance_hour, 1000);
  EXPECT_NEAR(series.relative_change, 1.0 / 999, 1e-12);
  EXPECT_EQ(history.Series(a, now).points.size(), 1u);
  EXPECT_TRUE(history.Series(a, {}).points.empty());
  history.Record({a}, 1001, now + hours(48));  // b is no longer published and is dropped; the current price of a stays
  EXPECT_EQ(history.size(), 1u);
}

}  // namespace
}  // namespace medley::sched
