#include "common/model/offering.h"

#include <tuple>

namespace medley::model {
namespace {

constexpr std::string_view kSpot = "spot";
constexpr std::string_view kOnDemand = "on-demand";

using Machine = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;

Machine MachineOf(const Offering& o) { return {o.provider, o.region, o.instance_type, o.capacity_type}; }

bool IsAnyOr(std::string_view wanted, std::string_view value) { return wanted.empty() || wanted == value; }

bool IsMachine(const Offering& wanted, std::string_view capacity_type, const Offering& sold) {
  return IsAnyOr(wanted.provider, sold.provider) && IsAnyOr(wanted.region, sold.region) &&
         IsAnyOr(wanted.instance_type, sold.instance_type) && IsAnyOr(capacity_type, sold.capacity_type);
}

double UnitPrice(const CatalogPrice& entry, double units_per_instance) {
  if (entry.usd_per_instance_hour > 0 && units_per_instance > 0)
    return entry.usd_per_instance_hour / units_per_instance;
  return entry.usd_per_unit_hour;
}

struct Candidate {
  PriceMatch match;
  const CatalogPrice* entry = nullptr;
};

// True when `a` wins over `b`.
bool IsBetter(const Candidate& a, const Candidate& b) {
  const auto rank = [](const Candidate& c) { return std::tuple(!c.match.available, c.match.usd_per_unit_hour); };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  const auto order = [](const Candidate& c) {
    const Offering& o = *c.entry->offering;
    return std::tuple<std::string_view, std::string_view, std::string_view, std::string_view, std::string_view,
                      std::string_view, size_t>(o.provider, o.region, o.zone, o.instance_type, o.capacity_type,
                                                c.entry->resource_type, c.match.entry);
  };
  return order(a) < order(b);
}

std::optional<PriceMatch> MatchOffering(std::span<const CatalogPrice> catalog, const PriceQuery& query,
                                        std::string_view capacity_type) {
  const Offering& wanted = *query.offering;
  std::set<Machine> zonal;  // machines whose zones hide the price of their region
  for (const CatalogPrice& entry : catalog) {
    if (entry.offering == nullptr || entry.offering->zone.empty()) continue;
    if (!(UnitPrice(entry, wanted.units_per_instance) > 0)) continue;
    const bool hides = wanted.zone.empty() ? entry.available && !query.not_zones.contains(entry.offering->zone)
                                           : entry.offering->zone == wanted.zone;
    if (hides) zonal.insert(MachineOf(*entry.offering));
  }
  std::optional<Candidate> best;
  for (size_t i = 0; i < catalog.size(); ++i) {
    const CatalogPrice& entry = catalog[i];
    if (entry.offering == nullptr || !IsMachine(wanted, capacity_type, *entry.offering)) continue;
    const std::string& zone = entry.offering->zone;
    if (zone.empty() ? zonal.contains(MachineOf(*entry.offering)) : !IsAnyOr(wanted.zone, zone)) continue;
    Candidate candidate{
        {i, UnitPrice(entry, wanted.units_per_instance), zone.empty() ? wanted.zone : zone, entry.available}, &entry};
    if (!(candidate.match.usd_per_unit_hour > 0) || query.not_zones.contains(candidate.match.zone)) continue;
    if (!best || IsBetter(candidate, *best)) best = std::move(candidate);
  }
  if (!best) return std::nullopt;
  return std::move(best->match);
}

bool KnowsSpot(std::span<const CatalogPrice> catalog, const Offering& wanted) {
  for (const CatalogPrice& entry : catalog) {
    if (entry.offering != nullptr && IsMachine(wanted, kSpot, *entry.offering)) return true;
  }
  return false;
}

std::optional<PriceMatch> MatchName(std::span<const CatalogPrice> catalog, const PriceQuery& query) {
  const std::string_view name = query.name;
  const std::string zone = query.offering != nullptr ? query.offering->zone : "";
  std::optional<PriceMatch> best;
  for (size_t i = 0; i < catalog.size() && !name.empty(); ++i) {
    const CatalogPrice& entry = catalog[i];
    if (entry.resource_type != name || !(entry.usd_per_unit_hour > 0)) continue;
    PriceMatch match{i, entry.usd_per_unit_hour, zone, entry.available};
    const auto rank = [](const PriceMatch& m) { return std::tuple(!m.available, m.usd_per_unit_hour, m.entry); };
    if (!best || rank(match) < rank(*best)) best = std::move(match);
  }
  return best;
}

}  // namespace

std::optional<PriceMatch> MatchPrice(std::span<const CatalogPrice> catalog, const PriceQuery& query) {
  std::optional<PriceMatch> match;
  if (query.offering != nullptr) {
    const Offering& wanted = *query.offering;
    match = MatchOffering(catalog, query, wanted.capacity_type);
    if (!match && wanted.capacity_type == kSpot && !KnowsSpot(catalog, wanted)) {
      match = MatchOffering(catalog, query, kOnDemand);
    }
  }
  if (!match) match = MatchName(catalog, query);
  return match;
}

}  // namespace medley::model
