// SearchPlans for models with any number of possible stages.
//
// With few possible stages it is SearchPlans. Else it first searches plans whose stages begin and end at chosen layers
// only (so runs of layers are one), then chooses layers around the ends of the best plan's stages, and so on while that
// finds better plans. Then it searches all stages that a better plan may have: those that the bound of single layers
// (layer_bound.h) does not exclude. If they are too many, or the budget ends, that bound is the answer.
#pragma once

#include <vector>

#include "scheduler-service/planner/interval_search.h"
#include "scheduler-service/planner/stage_planner.h"

namespace medley::sched {

// Problems with at most so many possible stages are searched as a whole at once: some milliseconds.
inline constexpr int64_t kFewPossibleStages = 20'000;

// Returns a lower bound of the rate of all wanted plans that were not examined; infinite if the search is complete.
// `goal` must know its best plan. With `schedule`, the type of each layer, only plans that keep it.
double SearchAnySize(const Problem& problem, const Budget& budget, Goal& goal, SearchOrder order, int points,
                     const std::vector<int>* schedule = nullptr);

// True if SearchAnySize does not search the whole problem at once.
bool HasManyStages(const Problem& problem);

// Says in the solution's notes what was left out, if the search of such a problem did not end.
void NoteUnsearched(const Problem& problem, Solution& solution);

}  // namespace medley::sched
