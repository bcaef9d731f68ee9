// The planners of the service.
#pragma once

#include "scheduler-service/planning/registry.h"

namespace medley::sched {

// All planners that need no neural network library: those in this folder, `hierarchy`, pipelines and `graph`.
Registry BuiltinPlanners();

}  // namespace medley::sched
