// What is left of a model's training mode in an exported program. Pure.
//
// A program has the mode in which it was exported. Calls of dropout and batch norm follow the mode of each run instead
// (worker/aten/adapted_calls.h), but some exports leave no such call behind.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "worker/exported/program.h"

namespace medley::worker::cut {

// Warnings: dropout that an export after eval() has removed, by module. Errors: InvalidArgument for a batch norm that
// has become arithmetic with its running statistics, which training could not update.
absl::StatusOr<std::vector<std::string>> CheckModes(const exported::Program& program);

}  // namespace medley::worker::cut
