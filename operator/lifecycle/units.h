// Units: what the job does when it may hold fewer or more of them.
//
// Fewer, but the plan still fits: nothing. A plan that is the best of many is the best of fewer as well.
// Fewer than the plan holds (a quota or limit was lowered): after a window, so that a short peak of other jobs does
// not count, a plan that fits. When there is none, the job keeps its plan.
// More: another plan is asked for, after a debounce and at most once in an interval.
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
  std::optional<base::SteadyTime> grown_since;      // units that no plan has considered yet
  std::optional<base::SteadyTime> growth_asked_at;  // when a plan with more units was last asked for
  std::optional<base::SteadyTime> over_since;       // the plan holds more units than it may
  std::map<std::string, int> infeasible_units;      // units, by pool, for which no plan was found
};

// Whether the plan in the memory holds at most what its pools offer.
bool PlanFits(const Pass& pass, const UsablePools& pools);

// "CapacityLowered", "CapacityChanged" or "". `forced`: see DecideMove.
std::string UnitsReason(Pass& pass, const TrainingJob& job, const UsablePools& pools, const PlanningInputs& now,
                        bool* forced);

}  // namespace medley::ops::lifecycle
