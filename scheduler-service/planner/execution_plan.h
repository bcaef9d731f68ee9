// From a provisioned choice to the plan that the runtime executes.
#pragma once

#include <vector>

#include "common/model/execution_plan.h"
#include "scheduler-service/cost/problem.h"

namespace medley::sched {

// Returns a plan without job_uid, generation and provenance. If the plan has parameter servers, they synchronise
// operations that are sparse or that the profile measured on servers (server_seconds > 0). Ring allreduce synchronises
// the other operations with weights in stages with more than one unit. All others are not synchronised. Pure.
model::ExecutionPlan BuildExecutionPlan(const Problem& problem, const std::vector<StageChoice>& stages);

}  // namespace medley::sched
