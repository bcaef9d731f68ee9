// Plans of stages for the objectives other than the least USD: the least USD per hour, and the fewest seconds to the
// end. By the search of `exact` (interval_search.h), with its proof.
//
// Pure and thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <optional>

#include "common/model/planning.h"
#include "scheduler-service/planner/stage_planner.h"

namespace medley::sched {

// What `objective` minimises, in its own units: USD, USD/h or seconds to the end.
double ValueOf(const Problem& problem, const Provisioned& plan, model::Objective objective);
// True if `one` is better than `other`: the value, and where it is the same (kSameCost), USD per hour and then seconds.
bool IsBetter(const Problem& problem, const Provisioned& one, const Provisioned& other, model::Objective objective);

// The best plan that puts every layer on type `t`.
std::optional<Provisioned> SingleTypeFor(const Problem& problem, int t, model::Objective objective);

// `objective`: kCostPerHour or kTime. Where the budget ends the search, the best plan found and a proven bound; with a
// complete search the bound is that of the plan. Errors: InvalidArgument where the model is too large for `exact`.
absl::StatusOr<Solution> SolveForObjective(const Problem& problem, model::Objective objective, const Budget& budget);

}  // namespace medley::sched
