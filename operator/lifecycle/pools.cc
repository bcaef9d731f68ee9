#include "operator/lifecycle/pools.h"

#include <algorithm>

#include "common/base/status.h"
#include "operator/builders/pods.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/refusal.h"

namespace medley::ops::lifecycle {
namespace {

constexpr base::nanoseconds kZoneAvoided = std::chrono::minutes(15);
constexpr base::nanoseconds kZoneAvoidedMost = std::chrono::hours(4);
constexpr base::nanoseconds kZoneForgotten = std::chrono::hours(8);

std::string NameList(const std::vector<PoolView>& pools) {
  std::string list;
  for (const PoolView& view : pools) list += (list.empty() ? "" : ", ") + view.pool.name;
  return list.empty() ? "the cluster has no ResourcePools" : "the cluster has: " + list;
}

std::optional<Unplanned> PriceRefusal(const PoolsView& all, const PoolView& view) {
  if (!all.catalog_revision) {
    return Unplanned(
        ConditionStatus::kUnknown, Reason::kSchedulerUnavailable,
        fmt::format("The price of pool '{}' is not known: the scheduling service does not answer.", view.pool.name));
  }
  return Unplanned(
      ConditionStatus::kFalse, Reason::kPoolUnpriced,
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

int CountHeld(const Pass& pass, const std::string& pool) {
  const auto& record = pass.memory.stored_plan.record;
  if (!record) return 0;
  return static_cast<int>(std::count_if(record->slots.begin(), record->slots.end(),
                                        [&](const MemberSlot& slot) { return slot.pool == pool; }));
}

// A pool that is unavailable, or on which the last plan could not run, gives a job no more units than it holds.
void LimitToHeld(const Pass& pass, UsablePools& usable) {
  for (PoolView& view : usable.pools) {
    const std::string& name = view.pool.name;
    if (view.only_held.empty() && !IsSetAside(pass, name)) continue;
    const int held = CountHeld(pass, name);
    if (held >= view.units && view.only_held.empty()) continue;
    view.units = std::min(view.units, held);
    view.held_by_others = 0;
    view.bound = view.only_held.empty()
                     ? "units that the job holds of pool " + name
                     : fmt::format("the {} units that the job holds of pool {}: {}", held, name, view.only_held);
  }
}

void LimitToTogether(const Pass& pass, UsablePools& usable) {
  for (PoolView& view : usable.pools) {
    const auto most = pass.memory.planning.together.find(view.pool.name);
    if (most == pass.memory.planning.together.end() || most->second >= view.units) continue;
    view.units = most->second;
    view.bound = "what is free together with units of other pools";
  }
}

std::map<std::string, ZoneChoice> ZoneChoices(const Pass& pass, ZonePreference preference) {
  std::map<std::string, ZoneChoice> choices;
  for (const auto& [pool, zones] : pass.memory.pools.avoided_zones) choices[pool].avoid = zones;
  for (const auto& [pool, zones] : pass.memory.pools.stuck_zones) {
    for (const auto& [zone, stuck] : zones) {
      if (pass.world.steady < stuck.avoided_until) choices[pool].avoid.insert(zone);
    }
  }
  if (const auto& record = pass.memory.stored_plan.record) {
    for (const auto& [pool, zone] : record->Zones()) {
      const auto planned = record->usd_per_unit_hour.find(pool);
      choices[pool].held = HeldUnits{zone, planned == record->usd_per_unit_hour.end() ? 0 : planned->second};
    }
  }
  for (auto& [pool, choice] : choices) choice.keep = preference == ZonePreference::kKeepHeld;
  return choices;
}

// Containers beside the worker leave it nothing of the unit. nullopt: they do.
std::optional<Unplanned> UnitRefusal(const TrainingJob& job, const ResourcePool& pool) {
  const absl::Status fits = CheckUnit(job, pool);
  if (fits.ok()) return std::nullopt;
  return Unplanned(ConditionStatus::kFalse, Reason::kUnitTooSmall,
                   fmt::format("spec.template: {}.", std::string(fits.message())));
}

// Why a pool that the job names cannot be used; nullopt: it can.
std::optional<Unplanned> WhyUnusable(const PoolsView& all, const TrainingJob& job, size_t index, const PoolView* view) {
  if (view == nullptr || !view->pool.Allows(job.key().ns)) {
    return Unplanned(
        ConditionStatus::kFalse, Reason::kPoolNotFound,
        fmt::format("spec.resources.pools[{}]: there is no usable ResourcePool '{}' for namespace '{}'; {}.", index,
                    job.pools[index], job.key().ns, NameList(all.pools)));
  }
  if (auto small = UnitRefusal(job, view->pool)) return small;
  return view->usd_per_unit_hour ? std::nullopt : std::optional(PriceRefusal(all, *view));
}

const PoolView* FindView(const PoolsView& all, const std::string& name) {
  const auto view = std::find_if(all.pools.begin(), all.pools.end(),
                                 [&](const PoolView& candidate) { return candidate.pool.name == name; });
  return view == all.pools.end() ? nullptr : &*view;
}

void SelectNamed(const PoolsView& all, const TrainingJob& job, PoolChoice& choice) {
  for (size_t i = 0; i < job.pools.size(); ++i) {
    const PoolView* view = FindView(all, job.pools[i]);
    std::optional<Unplanned> why = WhyUnusable(all, job, i, view);
    if (!why) {
      Add(*view, choice.pools);
    } else if (why->status == ConditionStatus::kUnknown) {  // no price is known yet
      choice.refusal = std::move(why);
      return;
    } else if (!choice.left_out) {
      choice.left_out = std::move(why);
    } else {
      choice.left_out->message += " " + why->message;
    }
  }
  if (choice.pools.pools.empty()) choice.refusal = choice.left_out;
}

void SelectAll(const PoolsView& all, const TrainingJob& job, PoolChoice& choice) {
  for (const PoolView& view : all.pools) {
    if (!view.pool.Allows(job.key().ns)) continue;
    if (auto small = UnitRefusal(job, view.pool)) {
      choice.refusal = std::move(small);
    } else if (view.usd_per_unit_hour) {
      Add(view, choice.pools);
    } else {
      choice.refusal = PriceRefusal(all, view);
    }
  }
  if (!choice.pools.pools.empty() && all.catalog_revision) choice.refusal.reset();
}

PoolChoice Select(const PoolsView& all, const TrainingJob& job) {
  PoolChoice choice;
  if (job.pools.empty()) {
    SelectAll(all, job, choice);
  } else {
    SelectNamed(all, job, choice);
  }
  if (choice.refusal) return choice;
  if (choice.pools.pools.empty()) {
    choice.refusal = Unplanned(ConditionStatus::kFalse, Reason::kPoolNotFound,
                               fmt::format("spec.resources.pools: namespace '{}' may not use any ResourcePool; {}.",
                                           job.key().ns, NameList(all.pools)));
  } else if (!job.server_pool.empty() && choice.pools.Find(job.server_pool) == nullptr) {
    choice.refusal = Unplanned(ConditionStatus::kFalse, Reason::kPoolNotFound,
                               fmt::format("spec.resources.serverPool: there is no usable ResourcePool '{}'; {}.",
                                           job.server_pool, NameList(all.pools)));
  }
  return choice;
}

// Sets the condition PoolsUsable. An unusable pool that the job names does not keep the job from using its other pools.
void ReportPools(Pass& pass, const TrainingJob& job, const PoolChoice& choice) {
  if (choice.refusal && !pass.memory.stored_plan.record) return;  // the condition Planned says why
  if (choice.refusal && !choice.left_out) return;                 // nothing is known of the pools now
  if (choice.left_out) {
    SetCondition(pass, kPoolsUsableCondition, choice.left_out->status, choice.left_out->reason,
                 choice.left_out->message);
  } else if (pass.report.conditions.Find(kPoolsUsableCondition) != nullptr) {
    SetCondition(pass, kPoolsUsableCondition, ConditionStatus::kTrue, Reason::kPoolsFound,
                 job.pools.empty() ? "spec.resources.pools is empty: the job may use every pool of its namespace."
                                   : "Every pool that the job names can be used.");
  }
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

std::set<std::string> UsablePools::Names() const {
  std::set<std::string> names;
  for (const PoolView& view : pools) names.insert(view.pool.name);
  return names;
}

UsablePools UsablePools::Only(const std::set<std::string>& names) const {
  UsablePools some = *this;
  const auto others = [&](const auto& entry) { return !names.contains(entry.first); };
  std::erase_if(some.pools, [&](const PoolView& view) { return !names.contains(view.pool.name); });
  std::erase_if(some.prices, others);
  std::erase_if(some.paid, others);
  std::erase_if(some.cheaper, others);
  std::erase_if(some.zones, others);
  return some;
}

void LimitByOutages(const std::vector<PoolOutage>& outages, base::WallTime now, PoolView& view) {
  if (view.pool.scaling != PoolScaling::kAutoscaled || !view.only_held.empty()) return;
  const PoolOutage* active = FindActive(outages, view.pool.object.generation(), view.zone, now);
  if (active != nullptr) view.only_held = ops::InWords(*active);
}

ZoneChoice AvoidOutages(ZoneChoice choice, const std::vector<PoolOutage>& outages, int64_t generation,
                        base::WallTime now) {
  for (const PoolOutage& outage : outages) {
    if (outage.zone.empty() || (choice.held && choice.held->zone == outage.zone)) continue;
    if (FindActive({outage}, generation, outage.zone, now) != nullptr) choice.avoid.insert(outage.zone);
  }
  return choice;
}

void AvoidZone(StuckZone& zone, base::SteadyTime now) {
  if (zone.failures > 0 && now < zone.avoided_until) return;  // the same pods
  if (now >= zone.avoided_until + kZoneForgotten) zone.failures = 0;
  zone.avoided_until = now + std::min(kZoneAvoided * (int64_t{1} << std::min(zone.failures, 10)), kZoneAvoidedMost);
  ++zone.failures;
}

void AvoidZone(Pass& pass, const std::string& pool, const std::string& zone) {
  PoolsState& own = pass.Own(&Memory::pools);
  own.avoided_zones[pool].insert(zone);
  AvoidZone(own.stuck_zones[pool][zone], pass.world.steady);
}

void ForgetAvoidedZones(Pass& pass) { pass.Own(&Memory::pools).avoided_zones.clear(); }

absl::StatusOr<PoolChoice> FindUsablePools(Pass& pass, const TrainingJob& job, ZonePreference preference) {
  MEDLEY_ASSIGN_OR_RETURN(const PoolsView all, pass.Ask(ReadPools{job.pools, true, ZoneChoices(pass, preference)}));
  PoolChoice choice = Select(all, job);
  ReportPools(pass, job, choice);
  LimitToHeld(pass, choice.pools);
  if (!pass.memory.stored_plan.record) LimitToTogether(pass, choice.pools);
  return choice;
}

absl::StatusOr<std::optional<UsablePools>> PoolsInOtherZones(Pass& pass, const TrainingJob& job,
                                                             const UsablePools& pools) {
  auto& avoided = pass.Own(&Memory::pools).avoided_zones;
  bool pinned = false;
  for (const auto& [pool, zone] : pools.zones) {
    if (zone.empty()) continue;
    pinned = true;
    avoided[pool].insert(zone);
  }
  if (!pinned) return std::optional<UsablePools>();
  MEDLEY_ASSIGN_OR_RETURN(const PoolChoice others, FindUsablePools(pass, job));
  if (others.refusal) return std::optional<UsablePools>();
  UsablePools same = others.pools.Only(pools.Names());
  const auto& zones = same.zones;
  const bool untried = std::any_of(zones.begin(), zones.end(), [&](const auto& item) {
    return !item.second.empty() && !avoided[item.first].contains(item.second);
  });
  if (untried) return std::optional<UsablePools>(std::move(same));
  avoided.clear();  // all were tried: from the beginning next time
  return std::optional<UsablePools>();
}

}  // namespace medley::ops::lifecycle
