// From a provisioned choice to the plan that the runtime executes.
#pragma once

#include <vector>

#include "common/model/execution_plan.h"
#include "scheduler-service/cost/problem.h"

namespace medley::sched {

// Without job_uid, generation and provenance. Operations that are sparse or that the profile serves (server_seconds > 0) are
// synchronised by parameter servers when servers are bought; other operations with weights by ring allreduce when the
// stage has more than one unit, else not at all; operations without weights have no synchronisation. Pure.
model::ExecutionPlan BuildExecutionPlan(const Problem& problem, const std::vector<StageChoice>& stages);

}  // namespace medley::sched
