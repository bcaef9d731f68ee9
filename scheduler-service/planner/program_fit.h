// Whether the runtime can execute the program of a plan: whether there is one, and whether its memory suffices.
#pragma once

#include <absl/status/status.h>

#include "common/model/forward.h"

namespace medley::sched {

// Whether some generator makes a program of the plan, for example an asynchronous one of stages that form no chain.
// OkStatus too for a plan that is too large to compile it beside others: whoever executes it compiles it again. Errors:
// Unimplemented with the reason. Pure.
absl::Status CheckProgram(const model::ExecutionPlan& plan, const model::PlanRequest& request);

// True if the plan's program does not fit in the memory of its pools with undo, and does without, with the batch of the
// request's profiles. False where no pool of the plan has a limit, where replicas differ (they need their versions),
// and for a plan that is too large to count its memory beside others. Pure.
bool FitsOnlyWithoutUndo(const model::ExecutionPlan& plan, const model::PlanRequest& request);

}  // namespace medley::sched
