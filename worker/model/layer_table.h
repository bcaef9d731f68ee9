// The names of the kinds of operations: those of jobs and exports, and those in the tables of planners. Pure;
// thread-safe.
#pragma once

#include <optional>
#include <string_view>

#include "worker/model/graph.h"

namespace medley::worker {

// "FullyConnected".
std::string_view KindName(OperationKind kind);
// Nullopt: unknown.
std::optional<OperationKind> KindNamed(std::string_view name);
// "FULLY_CONNECTED"; of kImported: empty, as it has many.
std::string PlannedKind(OperationKind kind);

}  // namespace medley::worker
