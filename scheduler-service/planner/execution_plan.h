// Converts provisioned stages to the plan that the runtime executes.
#pragma once

#include <vector>

#include "common/model/forward.h"
#include "scheduler-service/cost/terms.h"

namespace medley::sched {

class Problem;

// Does not set job_uid, generation and provenance. If the plan has parameter servers, they synchronise the operations
// that are sparse or whose profile has server_seconds > 0; so it is where rows are in trainers. Other operations with
// weights use allreduce if the stage has more than one unit, in groups if the request asks for them. All other
// operations have no synchronisation. Pure.
model::ExecutionPlan BuildExecutionPlan(const Problem& problem, const std::vector<StageChoice>& stages);

}  // namespace medley::sched
