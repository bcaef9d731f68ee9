// A profile as the simulator of a plan sees it: layers whose tables the plan has on a GPU take what was measured so.
// Pure.
#pragma once

#include "common/model/execution_plan.h"
#include "common/model/profile.h"

namespace medley::sched {

// True if `ForTables` changes something.
bool HasTablesOnDevice(const model::ExecutionPlan& plan);
// Nothing of the rows is pulled there, and the rows that a cache lacks are part of the passes.
model::Profile ForTables(model::Profile profile, const model::ExecutionPlan& plan);

}  // namespace medley::sched
