// Checks of what a plan places on devices. Pure functions; execution_plan.h documents the fields.
#pragma once

#include <absl/status/status.h>

#include <vector>

#include "common/model/execution_plan.h"

namespace medley::model {

// Devices, replicas, roots and levels of a plan with placements; not which operations are placed. Errors:
// InvalidArgument naming the field.
absl::Status CheckPlaced(const ExecutionPlan& plan);

// Every phase of operations [0, layers) once, or nothing. Errors: InvalidArgument naming the entry.
absl::Status CheckOrder(const std::vector<OrderEntry>& order, int layers);

}  // namespace medley::model
