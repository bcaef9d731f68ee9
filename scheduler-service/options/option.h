// One option of a planner, as users see it, and the check of a request's options. Pure, thread-safe.
#pragma once

#include <absl/status/status.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/planning.h"

namespace medley::sched {

enum class OptionKind { kInteger, kNumber, kChoice };

struct Option {
  std::string_view name;  // in camel case, as other fields of a request
  OptionKind kind = OptionKind::kNumber;
  double least = 0;  // of kInteger and kNumber
  double most = 0;
  std::vector<std::string_view> choices;  // of kChoice
  std::string default_value;              // as a text; may be a formula, "1.5 / layers"
  std::string_view description;           // what it changes, without a full stop
};

// The options of a planner, valid as long as the planner.
using Options = std::span<const Option>;

// "population (integer, 1 to 10000, default 100), ...".
std::string Describe(Options options);

// Checks what a request gives planner `planner`. Errors: InvalidArgument "planner.options.NAME: ..." for an option that
// it does not have (with the closest of its options, and all of them), of another kind, or out of range.
absl::Status CheckOptions(std::string_view planner, Options options, const model::OptionValues& given);

}  // namespace medley::sched
