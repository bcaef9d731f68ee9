#include "operator/lifecycle/pools.h"

#include <algorithm>

#include "common/base/status.h"
#include "operator/lifecycle/pass.h"

namespace medley::ops::lifecycle {
namespace {

// After pods found no node in a zone whose units count as free, such as a zone of a cloud without spot instances.
constexpr base::nanoseconds kStuckZoneAvoided = std::chrono::hours(1);

std::string NameList(const std::vector<PoolView>& pools) {
  std::string list;
  for (const PoolView& view : pools) list += (list.empty() ? "" : ", ") + view.pool.name;
  return list.empty() ? "the cluster has no ResourcePools" : "the cluster has: " + list;
}

std::optional<Unplanned> PriceRefusal(const PoolsView& all, const PoolView& view) {
  if (!all.catalog_revision) {
    return Unplanned(
        ConditionStatus::kUnknown, "SchedulerUnavailable",
        fmt::format("The price of pool '{}' is not known: the scheduling service does not answer.", view.pool.name));
  }
  return Unplanned(
      ConditionStatus::kFalse, "PoolUnpriced",
      fmt::format("spec.resources.pools: ResourcePool '{}' has no price: {}.", view.pool.name, view.why_unpriced));
}

void Add(const PoolView& view, UsablePools& usable) {
  const std::string& name = view.pool.name;
  usable.prices[name] = *view.usd_per_unit_hour;
  usable.paid[name] = view.paid_usd_per_unit_hour;
  usable.zones[name] = view.zone;
  if (view.cheaper_usd_per_unit_hour) usable.cheaper[name] = *view.cheaper_usd_per_unit_hour;
  usable.pools.push_back(view);
}

// A pool whose offerings are all unavailable gives a job no more units than it holds.
void LimitToHeld(const PlanRecord& record, UsablePools& usable) {
  for (PoolView& view : usable.pools) {
    if (!view.only_held) continue;
    const auto held = static_cast<int>(std::count_if(record.slots.begin(), record.slots.end(),
                                                     [&](const auto& slot) { return slot.pool == view.pool.name; }));
    if (held >= view.units) continue;
    view.units = held;
    view.bound = "units that the job holds of pool " + view.pool.name;
  }
}

std::map<std::string, ZoneChoice> ZoneChoices(const Pass& pass, ZonePreference preference) {
  std::map<std::string, ZoneChoice> choices;
  for (const auto& [pool, zones] : pass.memory.replanning.avoided_zones) choices[pool].avoid = zones;
  for (const auto& [pool, zones] : pass.memory.replanning.stuck_zones) {
    for (const auto& [zone, since] : zones) {
      if (pass.world.steady - since < kStuckZoneAvoided) choices[pool].avoid.insert(zone);
    }
  }
  if (const auto& record = pass.memory.planning.record) {
    for (const auto& [pool, zone] : record->Zones()) {
      const auto planned = record->usd_per_unit_hour.find(pool);
      choices[pool].held = HeldUnits{zone, planned == record->usd_per_unit_hour.end() ? 0 : planned->second};
    }
  }
  for (auto& [pool, choice] : choices) choice.keep = preference == ZonePreference::kKeepHeld;
  return choices;
}

std::optional<Unplanned> Select(const PoolsView& all, const TrainingJob& job, UsablePools& usable) {
  const bool named = !job.pools.empty();
  std::vector<std::string> wanted = job.pools;
  if (!named) {
    for (const PoolView& view : all.pools) wanted.push_back(view.pool.name);
  }
  std::optional<Unplanned> unpriced;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto view = std::find_if(all.pools.begin(), all.pools.end(),
                                   [&](const PoolView& candidate) { return candidate.pool.name == wanted[i]; });
    if (view == all.pools.end() || !view->pool.Allows(job.key().ns)) {
      if (!named) continue;
      return Unplanned(
          ConditionStatus::kFalse, "PoolNotFound",
          fmt::format("spec.resources.pools[{}]: there is no usable ResourcePool '{}' for namespace '{}'; {}.", i,
                      wanted[i], job.key().ns, NameList(all.pools)));
    }
    if (!view->usd_per_unit_hour) {
      unpriced = PriceRefusal(all, *view);
      if (named || !all.catalog_revision) return unpriced;
      continue;
    }
    Add(*view, usable);
  }
  if (usable.pools.empty() && unpriced) return unpriced;
  if (usable.pools.empty()) {
    return Unplanned(ConditionStatus::kFalse, "PoolNotFound",
                     fmt::format("spec.resources.pools: namespace '{}' may not use any ResourcePool; {}.", job.key().ns,
                                 NameList(all.pools)));
  }
  if (!job.server_pool.empty() && usable.Find(job.server_pool) == nullptr) {
    return Unplanned(ConditionStatus::kFalse, "PoolNotFound",
                     fmt::format("spec.resources.serverPool: there is no usable ResourcePool '{}'; {}.",
                                 job.server_pool, NameList(all.pools)));
  }
  return std::nullopt;
}

}  // namespace

const PoolView* UsablePools::Find(std::string_view name) const {
  for (const PoolView& view : pools) {
    if (view.pool.name == name) return &view;
  }
  return nullptr;
}

std::vector<PoolOffer> UsablePools::Offers() const {
  std::vector<PoolOffer> offers;
  for (const PoolView& view : pools) {
    offers.push_back({&view.pool, view.units, view.bound, view.usd_per_unit_hour.value_or(0), view.zone});
  }
  return offers;
}

std::map<std::string, int> UsablePools::Units() const {
  std::map<std::string, int> units;
  for (const PoolView& view : pools) units[view.pool.name] = view.units;
  return units;
}

absl::StatusOr<PoolChoice> FindUsablePools(Pass& pass, const TrainingJob& job, ZonePreference preference) {
  MEDLEY_ASSIGN_OR_RETURN(const PoolsView all, pass.Ask(ReadPools{job.pools, true, ZoneChoices(pass, preference)}));
  PoolChoice choice;
  choice.refusal = Select(all, job, choice.pools);
  if (pass.memory.planning.record) LimitToHeld(*pass.memory.planning.record, choice.pools);
  return choice;
}

absl::StatusOr<std::optional<UsablePools>> PoolsInOtherZones(Pass& pass, const TrainingJob& job,
                                                             const UsablePools& pools) {
  auto& avoided = pass.memory.replanning.avoided_zones;
  bool pinned = false;
  for (const auto& [pool, zone] : pools.zones) {
    if (zone.empty()) continue;
    pinned = true;
    avoided[pool].insert(zone);
  }
  if (!pinned) return std::optional<UsablePools>();
  MEDLEY_ASSIGN_OR_RETURN(PoolChoice others, FindUsablePools(pass, job));
  if (others.refusal) return std::optional<UsablePools>();
  const auto& zones = others.pools.zones;
  const bool untried = std::any_of(zones.begin(), zones.end(), [&](const auto& item) {
    return !item.second.empty() && !avoided[item.first].contains(item.second);
  });
  if (untried) return std::optional<UsablePools>(std::move(others.pools));
  avoided.clear();  // all were tried: from the beginning next time
  return std::optional<UsablePools>();
}

}  // namespace medley::ops::lifecycle
