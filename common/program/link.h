// Turns an order of passes into instructions with their dependencies, and cuts the lists from it. Pure.
#pragma once

#include <absl/status/status.h>

#include "common/program/lower.h"
#include "common/program/order.h"
#include "common/program/program.h"

namespace medley::program {

// Fills instructions, all_dependencies and lists of `program`, whose other fields are set. Errors: ResourceExhausted
// for more than max_instructions.
absl::Status Link(const Lowered& lowered, const Order& order, int64_t max_instructions, Program& program);

}  // namespace medley::program
