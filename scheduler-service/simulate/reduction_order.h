// The order of reductions for a plan whose reductions go on during the next step (Schedule::overlap_next_step), as
// ByteScheduler (Peng and others 2019) and P3 (Jayarajan and others 2019) order their messages: what the next step
// needs first goes first. Pure.
#pragma once

#include <vector>

#include "common/model/forward.h"
#include "scheduler-service/simulate/plan_simulation.h"

namespace medley::sched {

// Entries kReduce of ExecutionPlan::order, one for each block that is reduced: whenever its collective lists are free,
// of the blocks whose gradients are complete, the one whose forward pass comes first. A reduction is never interrupted,
// so what becomes complete meanwhile waits. `simulated`: of the plan in any order of reductions, with the spans of a
// step (PlanSimulationOptions::max_spans); without them it has no entries.
std::vector<model::OrderEntry> ReductionsByFirstUse(const PlanSimulation& simulated);

}  // namespace medley::sched
