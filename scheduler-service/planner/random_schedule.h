// Random schedules and small changes of them, for planners that search. Pure.
#pragma once

#include <vector>

#include "common/base/rng.h"
#include "scheduler-service/cost/problem.h"

namespace medley::sched {

// Types that each layer may be put on: profiled, some units, enough memory for the layer alone; where that leaves none,
// those that it is profiled on.
std::vector<std::vector<int>> TypesByLayer(const Problem& problem);

// A layer keeps the type of the one before it, where it may, with a probability that leaves `switches` changes on
// average; else it takes any.
std::vector<int> RandomSchedule(const std::vector<std::vector<int>>& types, double switches, base::Rng& rng);

// Changes each layer with probability `rate`: to a neighbour's type or to any. `schedule` as RandomSchedule's.
void Mutate(const std::vector<std::vector<int>>& types, double rate, base::Rng& rng, std::vector<int>& schedule);

}  // namespace medley::sched
