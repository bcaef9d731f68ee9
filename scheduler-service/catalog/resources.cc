#include "scheduler-service/catalog/resources.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "scheduler-service/catalog/units.h"

namespace medley::sched {
namespace {

using Place = std::pair<std::string, std::string>;                               // provider, region
using Machine = std::tuple<std::string, std::string, std::string, std::string>;  // provider, region, type, capacity

Machine MachineOf(const model::Offering& o, const std::string& capacity_type) {
  return {o.provider, o.region, o.instance_type, capacity_type};
}

// An index of the offerings, built once for all rules.
class Market {
 public:
  explicit Market(const std::vector<CatalogEntry>& offerings) {
    std::map<Place, std::vector<PricedShape>> bases;
    for (const CatalogEntry& entry : offerings) {
      if (!entry.offering || !entry.resource_type.empty() || entry.price_per_instance_hour <= 0) continue;
      const model::Offering& o = *entry.offering;
      known_.insert(MachineOf(o, o.capacity_type));
      if (!o.zone.empty()) zonal_.insert(MachineOf(o, o.capacity_type));
      entries_.push_back(&entry);
      if (!IsOnDemand(entry)) continue;
      on_demand_.try_emplace(MachineOf(o, ""), entry.price_per_instance_hour);
      if (IsBaseFamily(o.provider, o.instance_type)) {
        bases[{o.provider, o.region}].push_back({entry.shape, entry.price_per_instance_hour});
      }
    }
    for (const auto& [place, machines] : bases) {
      if (const auto base = FitBasePrices(machines)) base_.emplace(place, *base);
    }
  }

  // The offerings that match, including spot offerings without a known price: these get their on-demand price.
  std::vector<CatalogEntry> Fitting(const Selector& match) const {
    std::vector<CatalogEntry> out;
    for (const CatalogEntry* entry : entries_) {
      const model::Offering& o = *entry->offering;
      if (o.zone.empty() && zonal_.contains(MachineOf(o, o.capacity_type))) continue;
      if (Fits(match, *entry)) {
        out.push_back(*entry);
      } else if (IsOnDemand(*entry) && !known_.contains(MachineOf(o, "spot"))) {
        CatalogEntry spot = *entry;
        spot.offering->capacity_type = "spot";
        spot.quality = Quality::kDefault;
        if (Fits(match, spot)) out.push_back(std::move(spot));
      }
    }
    return out;
  }

  std::optional<SplitPrice> Split(const CatalogEntry& entry) const {
    const model::Offering& o = *entry.offering;
    const auto base = base_.find({o.provider, o.region});
    if (base == base_.end() || entry.shape.vcpus <= 0) return std::nullopt;
    if (IsOnDemand(entry)) return SplitOnDemand(entry.price_per_instance_hour, entry.shape, base->second);
    const auto on_demand = on_demand_.find(MachineOf(o, ""));
    if (on_demand == on_demand_.end()) return std::nullopt;
    return SplitSpot(entry.price_per_instance_hour, on_demand->second, entry.shape, base->second);
  }

 private:
  std::vector<const CatalogEntry*> entries_;
  std::set<Machine> known_;
  std::set<Machine> zonal_;
  std::map<Machine, double> on_demand_;  // the key's capacity type is empty
  std::map<Place, BasePrices> base_;
};

double UnitsOf(const ResourceRule& rule, const Shape& shape) {
  if (rule.units_per_instance > 0) return rule.units_per_instance;
  switch (rule.unit) {
    case UnitKind::kGpu:
      return WholeGpus(shape);
    case UnitKind::kCore:
      return shape.vcpus;
    case UnitKind::kInstance:
      return 1;
  }
  return 0;
}

// The part of an instance's price that its units cost, in USD per hour; 0 if unknown.
double PartPrice(const ResourceRule& rule, const Market& market, const CatalogEntry& entry) {
  if (rule.pricing == UnitPricing::kWhole || rule.unit == UnitKind::kInstance) return entry.price_per_instance_hour;
  const auto split = market.Split(entry);
  if (!split) return 0;
  // The price of a core includes its share of the memory.
  return rule.unit == UnitKind::kGpu ? split->gpu : split->cpu + split->memory;
}

std::optional<CatalogEntry> Derive(const ResourceRule& rule, const Market& market) {
  std::optional<CatalogEntry> best;
  for (CatalogEntry& entry : market.Fitting(rule.match)) {
    const double units = UnitsOf(rule, entry.shape);
    const double part = PartPrice(rule, market, entry);
    if (!(units > 0) || !(part > 0)) continue;
    entry.price_per_unit_hour = part / units;
    entry.offering->units_per_instance = units;
    if (best && std::tuple(!best->available, best->price_per_unit_hour) <=
                    std::tuple(!entry.available, entry.price_per_unit_hour)) {
      continue;
    }
    best = std::move(entry);
  }
  if (!best) return std::nullopt;
  best->resource_type = rule.name;
  best->cls = rule.cls;
  best->limit = rule.limit;
  best->memory_bytes = rule.memory_bytes;
  best->hardware = rule.hardware;
  return best;
}

}  // namespace

std::vector<CatalogEntry> DeriveResources(const std::vector<ResourceRule>& rules,
                                          const std::vector<CatalogEntry>& offerings) {
  std::vector<CatalogEntry> out;
  if (rules.empty()) return out;
  const Market market(offerings);
  for (const ResourceRule& rule : rules) {
    if (auto entry = Derive(rule, market)) out.push_back(std::move(*entry));
  }
  return out;
}

}  // namespace medley::sched
