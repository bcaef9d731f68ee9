// Units that the job may have: how many, and what it does when they become fewer or more.
//
// Fewer, and the plan still fits: nothing, a plan that is best of many is best of fewer.
// Fewer than the plan holds (a quota or limit was lowered): after a window, so that a passing
// surge of others is none, a plan that fits; where there is none the present one stays.
// More: a debounce later, and seldom, another plan is asked for.
#include <algorithm>

#include "operator/builders/pods.h"
#include "operator/controllers/job_pass.h"

namespace medley::ops {
namespace {

std::map<std::string, int> UnitsOf(const PlanRecord& record) {
  std::map<std::string, int> units;
  for (const MemberSlot& slot : record.slots) ++units[slot.pool];
  return units;
}

}  // namespace

// What the job's own pod, with its template, asks of a node.
PodDemand JobPass::UnitOf(const ResourcePool& pool, const std::string& zone) const {
  const MemberSlot slot{"unit", Role::kTrainer, pool.name, 0, 0, zone};
  return deps_.capacity.Demand(MemberPod(*job_, slot, pool, deps_.options.worker, "", 0));
}

JobUnits JobPass::UnitsFor(const ResourcePool& pool, const std::string& zone) const {
  return deps_.capacity.UnitsFor(pool, UnitOf(pool, zone), job_->key());
}

std::optional<JobPrice> JobPass::PriceFor(const ResourcePool& pool, const PriceCatalog* catalog,
                                          bool keep_zones) const {
  ZoneChoice choice;
  choice.keep = keep_zones;
  if (const auto avoided = memory_.avoided_zones.find(pool.name); avoided != memory_.avoided_zones.end()) {
    choice.avoid = avoided->second;
  }
  if (record_) {
    const std::map<std::string, std::string> zones = record_->Zones();
    const auto planned = record_->usd_per_unit_hour.find(pool.name);
    if (const auto zone = zones.find(pool.name); zone != zones.end()) {
      choice.held = HeldUnits{zone->second, planned == record_->usd_per_unit_hour.end() ? 0 : planned->second};
    }
  }
  return PriceForJob(pool, catalog, deps_.capacity.ZonesOf(pool, UnitOf(pool, "")), choice,
                     [&](const std::string& zone) { return UnitsFor(pool, zone).units > 0; });
}

bool JobPass::Fits(const Pools& pools) const {
  const std::map<std::string, std::string> held = record_->Zones();
  for (const auto& [pool, units] : UnitsOf(*record_)) {
    const auto offer = std::find_if(pools.offers.begin(), pools.offers.end(),
                                    [&](const PoolOffer& o) { return o.pool->name == pool; });
    if (offer == pools.offers.end()) return false;
    // Units that are offered in another zone say nothing of those that the plan holds.
    const std::string& zone = held.at(pool);
    if ((offer->zone == zone ? offer->units : UnitsFor(*offer->pool, zone).units) < units) return false;
  }
  return true;
}

std::string JobPass::CapacityReason(const Pools& pools, const PlanningInputs& now, bool* forced) {
  if (!Fits(pools)) {
    if (memory_.over_refused == now.units) return "";
    if (!memory_.over_since) memory_.over_since = steady_;
    const base::nanoseconds over = steady_ - *memory_.over_since;
    if (over < deps_.options.over_window) {
      Again(deps_.options.over_window - over);
      return "";
    }
    memory_.over_since.reset();  // the next plan is given its own time
    *forced = true;
    return "CapacityLowered";
  }
  memory_.over_since.reset();
  memory_.over_refused.clear();
  if (!memory_.considered) return "";
  bool grown = false;
  for (const auto& [pool, units] : now.units) {
    const auto before = memory_.considered->units.find(pool);
    grown = grown || before == memory_.considered->units.end() || before->second < units;
  }
  if (!grown) {
    memory_.grown_since.reset();
    return "";
  }
  if (!memory_.grown_since) memory_.grown_since = steady_;
  base::SteadyTime due = *memory_.grown_since + deps_.options.capacity_debounce;
  if (memory_.growth_asked_at) {
    due = std::max(due, *memory_.growth_asked_at + deps_.options.capacity_interval);
  }
  if (steady_ < due) {
    Again(due - steady_);
    return "";
  }
  memory_.growth_asked_at = steady_;
  // What was missing may be there now.
  *forced = observed_->throughput > 0 && BelowGoal();
  return "CapacityChanged";
}

}  // namespace medley::ops
