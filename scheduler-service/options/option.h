// One option of a planner, as users see it. Pure, thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace medley::sched
