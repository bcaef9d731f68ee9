#include "operator/lifecycle/units.h"

#include <algorithm>

#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/replanning.h"

namespace medley::ops::lifecycle {
namespace {

bool HasGrown(const std::map<std::string, int>& before, const std::map<std::string, int>& now) {
  return std::any_of(now.begin(), now.end(), [&](const auto& entry) {
    const auto old = before.find(entry.first);
    return old == before.end() || old->second < entry.second;
  });
}

std::optional<Reason> LoweredReason(Pass& pass, const PlanningInputs& now, bool* forced) {
  UnitsState& state = pass.Own(&Memory::units);
  if (state.infeasible_units == now.units) return std::nullopt;
  if (!state.over_since) state.over_since = pass.world.steady;
  const base::nanoseconds over = pass.world.steady - *state.over_since;
  if (over < pass.options.over_window) {
    pass.RequeueAfter(pass.options.over_window - over);
    return std::nullopt;
  }
  state.over_since.reset();  // the next plan gets a window of its own
  *forced = true;
  return Reason::kCapacityLowered;
}

}  // namespace

bool PlanFits(const Pass& pass, const UsablePools& pools) {
  const std::map<std::string, std::string> zones = pass.memory.stored_plan.record->Zones();
  std::map<std::string, int> held;
  for (const MemberSlot& slot : pass.memory.stored_plan.record->slots) ++held[slot.pool];
  return std::all_of(held.begin(), held.end(), [&](const auto& entry) {
    const PoolView* view = pools.Find(entry.first);
    if (view == nullptr) return false;
    // Units that are offered in another zone say nothing of those that the plan holds.
    return (view->zone == zones.at(entry.first) ? view->units : view->units_where_held) >= entry.second;
  });
}

void NoteInfeasibleUnits(Pass& pass, const std::map<std::string, int>& units) {
  pass.Own(&Memory::units).infeasible_units = units;
}

std::optional<Reason> UnitsReason(Pass& pass, const TrainingJob& job, const UsablePools& pools,
                                  const PlanningInputs& now, bool* forced) {
  UnitsState& state = pass.Own(&Memory::units);
  if (!PlanFits(pass, pools)) return LoweredReason(pass, now, forced);
  state.over_since.reset();
  state.infeasible_units.clear();
  const auto& considered = pass.memory.consider.considered;
  if (!considered) return std::nullopt;
  if (!HasGrown(considered->units, now.units)) {
    state.grown_since.reset();
    return std::nullopt;
  }
  if (!state.grown_since) state.grown_since = pass.world.steady;
  base::SteadyTime due = *state.grown_since + pass.options.capacity_debounce;
  if (state.growth_asked_at) due = std::max(due, *state.growth_asked_at + pass.options.capacity_interval);
  if (pass.world.steady < due) {
    pass.RequeueAfter(due - pass.world.steady);
    return std::nullopt;
  }
  state.growth_asked_at = pass.world.steady;
  *forced = pass.observed->throughput > 0 && IsBelowGoal(pass, job);  // the missing units may be available now
  return Reason::kCapacityChanged;
}

}  // namespace medley::ops::lifecycle
