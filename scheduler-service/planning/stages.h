// Plans of units as stages of a problem, which searches over units work with, and back. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "common/model/forward.h"
#include "scheduler-service/cost/score.h"
#include "scheduler-service/cost/terms.h"
#include "scheduler-service/devices/figures.h"

namespace medley::sched {

class Problem;

// The stages of a plan that has each of them in one pool, whose name is a type of the problem. Errors: InvalidArgument
// naming the stage for another plan.
absl::StatusOr<std::vector<StageChoice>> StagesOf(const Problem& problem, const model::ExecutionPlan& plan);

// What stages with this score reach and cost.
Figures FiguresOf(const Problem& problem, const std::vector<StageChoice>& stages, const Score& score);
// The score of stages whose time and USD are those of `figures`: prices and servers do not depend on time.
Score ScoreIn(const Problem& problem, const std::vector<StageChoice>& stages, const Figures& figures);

}  // namespace medley::sched
