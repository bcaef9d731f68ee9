// What a unit of a pool costs, and in which zone: the operator's use of common/model/offering.h. Pure.
//
// A job keeps the zone in which it holds a pool's units. Another zone is a candidate that goes through the usual
// decision (operator/lifecycle/replan_decision.h), so that a cheaper zone is taken only when the move pays.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/model/resource.h"
#include "operator/api/pool_zones.h"
#include "operator/api/resource_pool.h"
#include "operator/records/zone_choice.h"

namespace medley::ops {

struct PriceEntry {
  std::optional<model::Offering> offering;
  std::string resource_type;  // set when the feed names a type instead of an offering
  double usd_per_instance_hour = 0;
  double usd_per_unit_hour = 0;
  std::string source;
  bool available = true;
};

struct PriceCatalog {
  int64_t revision = 0;
  std::string price_time;  // RFC 3339
  std::vector<PriceEntry> entries;
};

struct UnitPrice {
  double usd_per_unit_hour = 0;
  std::string source;  // "spec", or the feed's
  std::string price_time;
  std::string zone;       // of the offering that was chosen; empty: the price holds in every zone
  std::string pin;        // the zone that pods are pinned to; empty: they are not pinned
  bool available = true;  // false: the catalog knows the offering, but no match is available
};

// The price of one unit of `pool`: its own, or the catalog's cheapest in the zones where the pool's units can be,
// without `not_zones`. Pods are not pinned where the pool's nodeSelector names a zone. nullopt: the pool has no price.
std::optional<UnitPrice> PriceOf(const ResourcePool& pool, const PriceCatalog* catalog, const PoolZones& zones = {},
                                 const std::set<std::string>& not_zones = {});

// Why PriceOf finds no available price in `catalog`, as a clause for messages.
std::string WhyUnpriced(const ResourcePool& pool, const PriceCatalog& catalog);

struct JobPrice {
  UnitPrice price;                   // to plan with; the last known one with `only_held`
  double paid = 0;                   // what a unit that the job holds costs now; without any: as `price`
  std::optional<UnitPrice> cheaper;  // of another zone, when `price` is that of the kept zone and higher
  // No offering is available: the job may keep the units that it holds, and gets no others.
  bool only_held = false;
};

// A kept zone is priced by its own offering while that is available and the job can have a unit there. Otherwise the
// price is that of the cheapest other zone, and `paid` is the catalog's price in the kept zone, or else the price that
// the plan was made with. `has_units(zone)`: whether the job could have a unit there; a zone without a unit is chosen
// only if no zone has one. nullopt: the pool has no price.
std::optional<JobPrice> PriceForJob(const ResourcePool& pool, const PriceCatalog* catalog, const PoolZones& zones,
                                    const ZoneChoice& choice,
                                    const std::function<bool(const std::string& zone)>& has_units);

}  // namespace medley::ops
