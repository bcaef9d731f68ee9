// Units: what the job does when it may hold fewer or more of them.
//
// If the job may hold fewer units but its plan still fits, nothing changes: the best plan for more units is still the
// best one. If the plan no longer fits (a quota or limit was lowered), a plan that fits is requested after a window, so
// that a short peak of other jobs does not count; if none is found, the job keeps its plan. If the job may hold more
// units, another plan is requested, after a debounce and at most once per interval.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "operator/api/training_job.h"
#include "operator/lifecycle/pools.h"

namespace medley::ops::lifecycle {

class Pass;
struct PlanningInputs;

struct UnitsState {
  static constexpr char kOwner[] = "units";
  std::optional<base::SteadyTime> grown_since;      // units that no plan has considered yet
  std::optional<base::SteadyTime> growth_asked_at;  // when a plan with more units was last asked for
  std::optional<base::SteadyTime> over_since;       // the plan holds more units than it may
  std::map<std::string, int> infeasible_units;      // units, by pool, for which no plan was found
};

// Whether the plan in the memory holds at most what its pools offer.
bool PlanFits(const Pass& pass, const UsablePools& pools);

// No plan was found for these units.
void NoteInfeasibleUnits(Pass& pass, const std::map<std::string, int>& units);
// Why to replan: kCapacityLowered, kCapacityChanged; nullopt: no reason. Sets `forced` (MoveInputs::forced).
std::optional<Reason> UnitsReason(Pass& pass, const TrainingJob& job, const UsablePools& pools,
                                  const PlanningInputs& now, bool* forced);

}  // namespace medley::ops::lifecycle
