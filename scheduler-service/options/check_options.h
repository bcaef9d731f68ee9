// The check of the options that a request gives its planner. Pure, thread-safe.
#pragma once

#include <absl/status/status.h>

#include <string_view>

#include "common/model/planning.h"
#include "scheduler-service/options/option.h"

namespace medley::sched {

// Checks what a request gives planner `planner`. Errors: InvalidArgument "planner.options.NAME: ..." for an option that
// it does not have (with the closest of its options, and all of them), of another kind, or out of range.
absl::Status CheckOptions(std::string_view planner, Options options, const model::OptionValues& given);

}  // namespace medley::sched
