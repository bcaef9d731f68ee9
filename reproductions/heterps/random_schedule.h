// Random schedules and mutations of them, for search planners. Pure.
#pragma once

#include <vector>

#include "common/base/rng.h"
#include "scheduler-service/cost/problem.h"

namespace medley::reproductions::heterps {

// The possible types of each layer: those with a profile, a limit above 0 and enough memory for the layer alone; if
// there are none, all types with a profile.
std::vector<std::vector<int>> TypesByLayer(const sched::Problem& problem);

// Draws a schedule. A layer gets the previous layer's type, if possible, with a probability that gives about `switches`
// changes of the type on average; otherwise any possible type.
std::vector<int> RandomSchedule(const std::vector<std::vector<int>>& types, double switches, base::Rng& rng);

// Changes each layer with probability `rate`, to a neighbour's type or to any possible type. `schedule` must have only
// possible types.
void Mutate(const std::vector<std::vector<int>>& types, double rate, base::Rng& rng, std::vector<int>& schedule);

}  // namespace medley::reproductions::heterps
