#include "operator/planning/pool_prices.h"

#include <fmt/core.h>

#include <tuple>

#include "common/model/offering.h"

namespace medley::ops {
namespace {

bool SelectsZone(const ResourcePool& pool) { return pool.node_selector.contains(kZoneLabel); }

// The entries that can matter to the pool: of its instance type, or of its name.
struct Relevant {
  std::vector<const PriceEntry*> entries;
  std::vector<model::CatalogPrice> prices;  // of the same positions
};

Relevant RelevantEntries(const ResourcePool& pool, const PriceCatalog& catalog) {
  Relevant relevant;
  for (const PriceEntry& entry : catalog.entries) {
    const bool by_type =
        pool.offering && entry.offering &&
        (pool.offering->instance_type.empty() || pool.offering->instance_type == entry.offering->instance_type);
    if (!by_type && entry.resource_type != pool.name) continue;
    relevant.entries.push_back(&entry);
    relevant.prices.push_back({entry.offering ? &*entry.offering : nullptr, entry.resource_type,
                               entry.usd_per_instance_hour, entry.usd_per_unit_hour, entry.available});
  }
  return relevant;
}

// What the pool asks for, in a zone where its nodeSelector names one.
std::optional<model::Offering> WantedBy(const ResourcePool& pool) {
  std::optional<model::Offering> wanted = pool.offering;
  if (wanted && wanted->zone.empty() && SelectsZone(pool)) wanted->zone = pool.node_selector.at(kZoneLabel);
  return wanted;
}

struct Found {
  model::PriceMatch match;
  const PriceEntry* entry = nullptr;
};

std::optional<Found> Find(const Relevant& relevant, const ResourcePool& pool,
                          const std::optional<model::Offering>& wanted, const std::set<std::string>& not_zones) {
  auto match = model::MatchPrice(relevant.prices, {wanted ? &*wanted : nullptr, pool.name, not_zones});
  if (!match) return std::nullopt;
  const PriceEntry* entry = relevant.entries[match->entry];
  return Found{*std::move(match), entry};
}

// The best of some zones. A price that holds in all of them alike names no zone.
std::optional<Found> FindInZones(const Relevant& relevant, const ResourcePool& pool, model::Offering wanted,
                                 const std::set<std::string>& zones, const std::set<std::string>& not_zones) {
  std::optional<Found> best;
  bool alike = true;
  for (const std::string& zone : zones) {
    if (not_zones.contains(zone)) continue;
    wanted.zone = zone;
    std::optional<Found> found = Find(relevant, pool, wanted, not_zones);
    if (!found) {
      alike = false;
      continue;
    }
    const auto rank = [](const Found& f) { return std::tuple(!f.match.available, f.match.usd_per_unit_hour); };
    alike = alike && (!best || best->entry == found->entry);
    if (!best || rank(*found) < rank(*best)) best = std::move(found);
  }
  if (best && alike && (!best->entry->offering || best->entry->offering->zone.empty())) best->match.zone.clear();
  return best;
}

UnitPrice PriceFrom(const Found& found, const ResourcePool& pool, const PriceCatalog& catalog, const PoolZones& zones) {
  UnitPrice price{found.match.usd_per_unit_hour, found.entry->source, catalog.price_time, found.match.zone, "",
                  found.match.available};
  const bool has_nodes = zones.zones.empty() || zones.zones.contains(price.zone);
  if (zones.pinnable && has_nodes && !SelectsZone(pool)) price.pin = price.zone;
  return price;
}

// The price of the kept zone; nothing where the catalog does not know it, or the pool has no nodes there any more.
std::optional<UnitPrice> PriceIn(const std::string& zone, const ResourcePool& pool, const PriceCatalog* catalog,
                                 const PoolZones& zones) {
  if (catalog == nullptr || !pool.offering) return std::nullopt;
  if (!zones.zones.empty() && !zones.zones.contains(zone)) return std::nullopt;
  std::optional<model::Offering> wanted = WantedBy(pool);
  if (!wanted->zone.empty() && wanted->zone != zone) return std::nullopt;
  wanted->zone = zone;
  const auto found = Find(RelevantEntries(pool, *catalog), pool, wanted, {});
  if (!found) return std::nullopt;
  UnitPrice price = PriceFrom(*found, pool, *catalog, zones);
  price.zone = zone;
  price.pin = zone;  // as its pods are
  return price;
}

std::optional<UnitPrice> Available(std::optional<UnitPrice> price) {
  return price && price->available ? std::move(price) : std::nullopt;
}

}  // namespace

std::optional<UnitPrice> PriceOf(const ResourcePool& pool, const PriceCatalog* catalog, const PoolZones& zones,
                                 const std::set<std::string>& not_zones) {
  if (pool.usd_per_unit_hour > 0) return UnitPrice{pool.usd_per_unit_hour, "spec", "", "", "", true};
  if (catalog == nullptr) return std::nullopt;
  const Relevant relevant = RelevantEntries(pool, *catalog);
  const std::optional<model::Offering> wanted = WantedBy(pool);
  const bool in_zones = wanted && wanted->zone.empty() && !zones.zones.empty();
  const auto found =
      in_zones ? FindInZones(relevant, pool, *wanted, zones.zones, not_zones) : Find(relevant, pool, wanted, not_zones);
  if (!found) return std::nullopt;
  return PriceFrom(*found, pool, *catalog, zones);
}

std::string WhyUnpriced(const ResourcePool& pool, const PriceCatalog& catalog) {
  const std::string key = pool.offering ? pool.offering->KeyString() : pool.name;
  if (PriceOf(pool, &catalog)) {
    return fmt::format("the catalog (revision {}) knows {}, but not as available in a zone that the pool can use",
                       catalog.revision, key);
  }
  return fmt::format("the catalog (revision {}) has no offering that matches {}", catalog.revision, key);
}

std::optional<JobPrice> PriceForJob(const ResourcePool& pool, const PriceCatalog* catalog, const PoolZones& zones,
                                    const ZoneChoice& choice,
                                    const std::function<bool(const std::string& zone)>& has_units) {
  // Pods that run unpinned stay so: they may be in any zone.
  const bool unpinned = choice.held && choice.held->zone.empty();
  const PoolZones usable{zones.pinnable && !unpinned, zones.zones};
  const auto cheapest = [&]() -> std::optional<UnitPrice> {
    std::set<std::string> without = choice.avoid;
    std::optional<UnitPrice> first;
    while (auto price = Available(PriceOf(pool, catalog, usable, without))) {
      if (price->pin.empty() || has_units(price->pin)) return price;
      without.insert(price->pin);
      if (!first) first = std::move(price);
    }
    // Every zone is full or avoided: the cheapest of all, for which the job then waits.
    return first ? first : Available(PriceOf(pool, catalog, usable));
  };
  std::optional<UnitPrice> best = cheapest();
  std::optional<UnitPrice> last = best ? std::nullopt : PriceOf(pool, catalog, usable);
  const bool holds_zone = choice.held && !choice.held->zone.empty() && pool.usd_per_unit_hour <= 0;
  if (!holds_zone) {
    const bool only_held = !best;
    if (only_held) best = std::move(last);
    if (!best) return std::nullopt;
    const double paid = best->usd_per_unit_hour;
    return JobPrice{*std::move(best), paid, std::nullopt, only_held};
  }
  const std::string& zone = choice.held->zone;
  std::optional<UnitPrice> kept = PriceIn(zone, pool, catalog, zones);
  const double paid = kept ? kept->usd_per_unit_hour : choice.held->usd_per_unit_hour;
  const bool may_keep = kept && kept->available && !choice.avoid.contains(zone) && has_units(zone);
  if (choice.keep && may_keep) {
    const bool cheaper = best && best->pin != zone && best->usd_per_unit_hour < kept->usd_per_unit_hour;
    return JobPrice{*std::move(kept), paid, cheaper ? best : std::nullopt, false};
  }
  if (best) return JobPrice{*std::move(best), paid, std::nullopt, false};
  if (!kept) kept = std::move(last);
  if (!kept) return std::nullopt;
  kept->pin = zone;
  return JobPrice{*std::move(kept), paid, std::nullopt, true};
}

}  // namespace medley::ops
