#include "scheduler-service/catalog/merge.h"

#include <algorithm>

namespace medley::sched {
namespace {

struct Candidate {
  CatalogEntry entry;
  int priority = 0;
};

// True if `a` is preferred to `b`.
bool Better(const Candidate& a, const Candidate& b) {
  const bool a_is_fallback = a.entry.quality == Quality::kFallback;
  const bool b_is_fallback = b.entry.quality == Quality::kFallback;
  if (a_is_fallback != b_is_fallback) return b_is_fallback;
  return a.priority > b.priority;
}

bool Unavailable(const CatalogEntry& entry, base::WallTime now) {
  return !entry.available && (entry.unavailable_until == base::WallTime() || now < entry.unavailable_until);
}

base::nanoseconds TtlOf(const SourcePrices& source, const CatalogEntry& entry) {
  return entry.offering && !IsSpot(entry) ? source.on_demand_ttl : source.ttl;
}

const Shape* FindShape(const MachineShapes& machines, const model::Offering& offering) {
  const auto found = machines.find({offering.provider, offering.instance_type});
  return found == machines.end() ? nullptr : &found->second;
}

void FillShape(const MachineShapes& machines, CatalogEntry& entry) {
  if (!entry.offering) return;
  if (entry.shape == Shape()) {
    if (const Shape* shape = FindShape(machines, *entry.offering)) entry.shape = *shape;
  }
  if (entry.offering->units_per_instance != 1) return;
  const double gpus = entry.shape.gpus * entry.shape.gpu_fraction;
  if (gpus > 0 || entry.shape.vcpus > 0) entry.offering->units_per_instance = gpus > 0 ? gpus : entry.shape.vcpus;
}

// The shapes in the configuration, and those that sources report.
MachineShapes AllShapes(const std::vector<SourcePrices>& sources, const MachineShapes& machines) {
  MachineShapes out = machines;
  for (const SourcePrices& source : sources) {
    for (const auto& [key, entry] : source.prices->known) {
      if (!entry.offering || entry.shape == Shape()) continue;
      out.try_emplace({entry.offering->provider, entry.offering->instance_type}, entry.shape);
    }
  }
  return out;
}

}  // namespace

std::optional<double> FindOnDemand(const std::vector<SourcePrices>& sources, const model::Offering& offering) {
  model::Offering wanted = offering;
  wanted.capacity_type = "on-demand";
  std::optional<double> price;
  int priority = 0;
  for (const std::string& zone : {offering.zone, std::string()}) {
    wanted.zone = zone;
    const std::string key = wanted.KeyString();
    for (const SourcePrices& source : sources) {
      const auto found = source.prices->known.find(key);
      if (found == source.prices->known.end() || found->second.price_per_instance_hour <= 0) continue;
      if (price && source.priority <= priority) continue;
      price = found->second.price_per_instance_hour;
      priority = source.priority;
    }
    if (price) break;
  }
  return price;
}

MergedPrices Merge(const std::vector<SourcePrices>& sources, const MachineShapes& machines,
                   const StalenessOptions& staleness, base::WallTime now) {
  std::map<std::string, Candidate> best;
  std::set<std::string> unavailable;
  for (const SourcePrices& source : sources) {
    for (const auto& [key, entry] : source.prices->known) {
      Candidate candidate{entry, source.priority};
      CatalogEntry& e = candidate.entry;
      const bool is_spot = IsSpot(e);
      const Assessment found =
          Assess(staleness, e, TtlOf(source, e), is_spot ? FindOnDemand(sources, *e.offering) : std::nullopt, now);
      if (Unavailable(e, now) && found.quality != Quality::kFallback) unavailable.insert(key);
      e.quality = found.quality;
      e.price_per_instance_hour *= found.factor;
      e.price_per_unit_hour *= found.factor;
      const auto [other, is_new] = best.try_emplace(key, std::move(candidate));  // moves only if the key is new
      if (!is_new && Better(candidate, other->second)) other->second = std::move(candidate);
    }
  }
  const MachineShapes shapes = AllShapes(sources, machines);
  MergedPrices out;
  for (auto& [key, candidate] : best) {
    candidate.entry.available = !unavailable.contains(key);
    FillShape(shapes, candidate.entry);
    out.emplace(key, std::move(candidate.entry));
  }
  return out;
}

}  // namespace medley::sched
