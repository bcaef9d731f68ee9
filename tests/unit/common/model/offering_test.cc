#include "common/model/offering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "common/base/rng.h"
#include "common/model/resource.h"

namespace medley::model {
namespace {

constexpr uint64_t kSeed = 20261122;

struct Row {
  Offering offering;
  double usd = 0;  // of an instance
  bool available = true;
};

Offering P3(const std::string& zone, const std::string& capacity = "spot", double units = 1) {
  return {"aws", "us-east-1", zone, "p3", capacity, units};
}

std::vector<CatalogPrice> PricesOf(const std::vector<Row>& rows) {
  std::vector<CatalogPrice> prices;
  for (const Row& row : rows) prices.push_back({&row.offering, "", row.usd, row.usd, row.available});
  return prices;
}

struct MatchCase {
  const char* name;
  std::vector<Row> catalog;
  Offering wanted;
  int entry = -1;  // -1: no match
  double usd = 0;
  std::string zone;
  bool available = true;
  std::set<std::string> not_zones = {};
};

TEST(MatchPriceTest, Table) {
  const std::vector<MatchCase> cases = {
      {"an absent zone means any, and the cheapest wins", {{P3("a"), 3}, {P3("b"), 2}}, P3(""), 1, 2, "b"},
      {"a zone that is named is the one", {{P3("a"), 3}, {P3("b"), 2}}, P3("a"), 0, 3, "a"},
      {"another zone's price is not this one's", {{P3("b"), 2}}, P3("a")},
      {"an unavailable offering does not win", {{P3("a"), 3}, {P3("b"), 2, false}}, P3(""), 0, 3, "a"},
      {"unless nothing is available", {{P3("a"), 3, false}, {P3("b"), 2, false}}, P3(""), 1, 2, "b", false},
      {"equal prices: the first zone by name", {{P3("b"), 2}, {P3("a"), 2}}, P3(""), 1, 2, "a"},
      {"a price without a zone holds in every zone", {{P3(""), 2}}, P3("a"), 0, 2, "a"},
      {"a price without a zone names none", {{P3(""), 2}}, P3(""), 0, 2, ""},
      {"prices of zones hide that of the region", {{P3(""), 1}, {P3("a"), 3}}, P3(""), 1, 3, "a"},
      {"the zone's own price hides that of the region", {{P3(""), 1}, {P3("a"), 3}}, P3("a"), 1, 3, "a"},
      {"also where the zone is unavailable", {{P3(""), 1}, {P3("a"), 3, false}}, P3("a"), 1, 3, "a", false},
      {"other zones may still be available", {{P3(""), 1}, {P3("a"), 3, false}}, P3(""), 0, 1, ""},
      {"a zone that must not be chosen", {{P3("a"), 3}, {P3("b"), 2}}, P3(""), 0, 3, "a", true, {"b"}},
      {"the price of an instance over the wanted units", {{P3("a", "spot", 9), 8}}, P3("", "spot", 4), 0, 2, "a"},
      {"another capacity type", {{P3("a", "reserved"), 1}}, P3("a")},
      {"absent provider, region and capacity type mean any",
       {{P3("a", "on-demand"), 3}, {P3("a"), 2}},
       {"", "", "", "p3", "", 1},
       1,
       2,
       "a"},
      {"spot that nobody knows costs on-demand", {{P3("", "on-demand"), 3}}, P3("a"), 0, 3, "a"},
      {"spot that is known elsewhere does not", {{P3("", "on-demand"), 3}, {P3("b"), 1}}, P3("a")},
      {"a price of 0 does not count", {{P3("a"), 0}}, P3("a")},
  };
  for (const MatchCase& c : cases) {
    SCOPED_TRACE(c.name);
    const auto match = MatchPrice(PricesOf(c.catalog), {&c.wanted, "", c.not_zones});
    ASSERT_EQ(match.has_value(), c.entry >= 0);
    if (!match) continue;
    EXPECT_EQ(static_cast<int>(match->entry), c.entry);
    EXPECT_DOUBLE_EQ(match->usd_per_unit_hour, c.usd);
    EXPECT_EQ(match->zone, c.zone);
    EXPECT_EQ(match->available, c.available);
  }
}

TEST(MatchPriceTest, TheOfferingThenTheName) {
  const Offering sold = P3("a");
  const std::vector<CatalogPrice> catalog = {{&sold, "", 3, 3, true}, {nullptr, "lab", 0, 0.5, true}};
  const Offering wanted = P3("");
  const Offering unknown = P3("", "reserved");
  EXPECT_EQ(MatchPrice(catalog, {&wanted, "lab", {}})->entry, 0u);
  EXPECT_EQ(MatchPrice(catalog, {&unknown, "lab", {}})->entry, 1u);
  EXPECT_EQ(MatchPrice(catalog, {nullptr, "lab", {}})->usd_per_unit_hour, 0.5);
  EXPECT_FALSE(MatchPrice(catalog, {nullptr, "other", {}}).has_value());
  EXPECT_FALSE(MatchPrice(catalog, {nullptr, "", {}}).has_value());
}

// The rule again, written as its sentences and not for speed: every candidate is judged against the whole catalog.
std::optional<PriceMatch> Naive(const std::vector<Row>& rows, const Offering& wanted,
                                const std::set<std::string>& not_zones) {
  const auto same_machine = [](const Offering& a, const Offering& b) {
    return a.provider == b.provider && a.region == b.region && a.instance_type == b.instance_type &&
           a.capacity_type == b.capacity_type;
  };
  const auto fits = [&](const Offering& o, const std::string& capacity) {
    return (wanted.provider.empty() || wanted.provider == o.provider) &&
           (wanted.region.empty() || wanted.region == o.region) &&
           (wanted.instance_type.empty() || wanted.instance_type == o.instance_type) &&
           (capacity.empty() || capacity == o.capacity_type);
  };
  const auto search = [&](const std::string& capacity) {
    std::vector<std::pair<
        std::tuple<bool, double, std::string, std::string, std::string, std::string, std::string, size_t>, PriceMatch>>
        found;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Offering& o = rows[i].offering;
      if (!fits(o, capacity) || rows[i].usd <= 0) continue;
      if (!o.zone.empty() && !wanted.zone.empty() && o.zone != wanted.zone) continue;
      const bool hidden =
          o.zone.empty() && std::any_of(rows.begin(), rows.end(), [&](const Row& other) {
            const std::string& zone = other.offering.zone;
            if (!same_machine(other.offering, o) || zone.empty() || other.usd <= 0) return false;
            return wanted.zone.empty() ? other.available && !not_zones.contains(zone) : zone == wanted.zone;
          });
      const std::string zone = o.zone.empty() ? wanted.zone : o.zone;
      if (hidden || not_zones.contains(zone)) continue;
      const double usd = rows[i].usd / wanted.units_per_instance;
      found.push_back({{!rows[i].available, usd, o.provider, o.region, o.zone, o.instance_type, o.capacity_type, i},
                       {i, usd, zone, rows[i].available}});
    }
    const auto best =
        std::min_element(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return best == found.end() ? std::nullopt : std::optional(best->second);
  };
  auto match = search(wanted.capacity_type);
  const bool knows_spot = std::any_of(rows.begin(), rows.end(), [&](const Row& r) { return fits(r.offering, "spot"); });
  if (!match && wanted.capacity_type == "spot" && !knows_spot) match = search("on-demand");
  return match;
}

TEST(MatchPriceTest, AsANaiveReferenceOnRandomCatalogs) {
  base::Rng rng(kSeed);
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  const auto pick = [&](std::initializer_list<const char*> of) {
    return std::string(*(of.begin() + rng.Below(of.size())));
  };
  int matched = 0;
  int unavailable = 0;
  for (int round = 0; round < 5000; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::vector<Row> rows;
    for (uint64_t n = rng.Below(12); n > 0; --n) {
      // Few prices, so that ties are common.
      rows.push_back({{pick({"aws", "gcp"}), pick({"r", "s"}), pick({"", "a", "b", "c"}), pick({"p3", "p4"}),
                       pick({"spot", "on-demand"}), 1},
                      static_cast<double>(rng.Below(4)),
                      rng.Below(3) != 0});
    }
    const Offering wanted{pick({"", "aws"}),
                          pick({"", "r", "r"}),
                          pick({"", "", "a", "b"}),
                          pick({"", "p3", "p3"}),
                          pick({"", "spot", "on-demand"}),
                          1.0 + static_cast<double>(rng.Below(3))};
    std::set<std::string> not_zones;
    if (rng.Below(3) == 0) not_zones.insert(pick({"a", "b"}));
    const auto expected = Naive(rows, wanted, not_zones);
    const auto match = MatchPrice(PricesOf(rows), {&wanted, "", not_zones});
    ASSERT_EQ(match.has_value(), expected.has_value());
    if (!match) continue;
    ++matched;
    unavailable += match->available ? 0 : 1;
    ASSERT_EQ(match->entry, expected->entry);
    ASSERT_DOUBLE_EQ(match->usd_per_unit_hour, expected->usd_per_unit_hour);
    ASSERT_EQ(match->zone, expected->zone);
    ASSERT_EQ(match->available, expected->available);
    // The order of the catalog does not change the answer, only the position of what is equal in every field.
    const Offering before = rows[match->entry].offering;
    std::reverse(rows.begin(), rows.end());
    const auto again = MatchPrice(PricesOf(rows), {&wanted, "", not_zones});
    ASSERT_TRUE(again.has_value());
    ASSERT_EQ(rows[again->entry].offering, before);
  }
  EXPECT_GT(matched, 1000);
  EXPECT_GT(unavailable, 50);
}

}  // namespace
}  // namespace medley::model
