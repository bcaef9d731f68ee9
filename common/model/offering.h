// The rule by which a pool or a resource finds its price in a catalog. Operator, scheduling service and command line
// all use it. Pure.
//
//   1. A field that the wanted offering leaves empty matches any value.
//   2. A price without a zone holds in every zone of its region that has no price of its own. Where the wanted offering
//      names no zone either, such a price is hidden by available prices of the same machine's zones.
//   3. Among the matches, an available offering wins over an unavailable one, then the lower price of a unit. Among
//      equal prices the first wins in the order of provider, region, zone, instance type, capacity type, resource type
//      and position in the catalog.
//   4. If the catalog has no spot offering of a machine in any zone, spot costs what on-demand of that machine costs.
//   5. Where no offering matches, the price of the resource type with the name of the pool or resource counts.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "common/model/resource.h"

namespace medley::model {

// One entry of a catalog, as the rule sees it. Borrows from the catalog.
struct CatalogPrice {
  const Offering* offering = nullptr;  // null: the price of a resource type alone
  std::string_view resource_type;      // may be empty
  double usd_per_instance_hour = 0;    // 0: unknown
  double usd_per_unit_hour = 0;        // of the entry's own unit; used when the price of the instance is unknown
  bool available = true;
};

// What to find a price for. Borrows. `offering` null: search by name alone.
struct PriceQuery {
  const Offering* offering = nullptr;
  std::string_view name;            // of the pool or resource
  std::set<std::string> not_zones;  // zones that must not be chosen
};

struct PriceMatch {
  size_t entry = 0;              // position in the catalog
  double usd_per_unit_hour = 0;  // above 0; for an instance of the wanted offering's number of units
  // The zone of the price: that of the matching offering, or else the wanted one. Empty: neither names a zone.
  std::string zone;
  bool available = true;  // false: no match is available, and this is the cheapest one
};

// Ignores entries without a price. nullopt when the catalog knows neither the offering nor the name.
std::optional<PriceMatch> MatchPrice(std::span<const CatalogPrice> catalog, const PriceQuery& query);

}  // namespace medley::model
