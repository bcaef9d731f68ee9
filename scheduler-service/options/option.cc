#include "scheduler-service/options/option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "common/base/closest.h"
#include "common/base/status.h"
#include "scheduler-service/options/check_options.h"

namespace medley::sched {
namespace {

std::string TextOf(const model::OptionValue& value) {
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  constexpr size_t kShown = 60;
  return fmt::format("'{}'", std::get<std::string>(value).substr(0, kShown));
}

// What the option must be: "an integer in [1, 10000]".
std::string Demand(const Option& option) {
  switch (option.kind) {
    case OptionKind::kInteger:
      return fmt::format("an integer in [{}, {}]", option.least, option.most);
    case OptionKind::kNumber:
      return fmt::format("a number in [{}, {}]", option.least, option.most);
    case OptionKind::kChoice:
      return fmt::format("one of {}", fmt::join(option.choices, ", "));
  }
  return "";
}

bool Holds(const Option& option, const model::OptionValue& value) {
  if (option.kind == OptionKind::kChoice) {
    const auto* text = std::get_if<std::string>(&value);
    return text != nullptr && std::ranges::find(option.choices, *text) != option.choices.end();
  }
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr || !(*number >= option.least && *number <= option.most)) return false;
  return option.kind == OptionKind::kNumber || *number == std::floor(*number);
}

absl::Status CheckValue(const Option& option, const model::OptionValue& value) {
  if (Holds(option, value)) return absl::OkStatus();
  std::string meant;
  if (const auto* text = std::get_if<std::string>(&value); text != nullptr && option.kind == OptionKind::kChoice) {
    meant = base::DidYouMean(*text, {option.choices.begin(), option.choices.end()});
  }
  return base::InvalidArgument("planner.options.{}: must be {}, is {}{}", option.name, Demand(option), TextOf(value),
                               meant);
}

absl::Status UnknownOption(std::string_view planner, Options options, const std::string& name) {
  if (options.empty()) {
    return base::InvalidArgument("planner.options.{}: planner {} has no options", name, planner);
  }
  std::vector<std::string> names;
  for (const Option& option : options) names.emplace_back(option.name);
  return base::InvalidArgument("planner.options.{}: planner {} has no such option{} Its options: {}", name, planner,
                               base::DidYouMean(name, names).empty() ? "." : base::DidYouMean(name, names),
                               Describe(options));
}

}  // namespace

std::string Describe(Options options) {
  std::string text;
  for (const Option& option : options) {
    const std::string range =
        option.kind == OptionKind::kChoice
            ? fmt::format("{}", fmt::join(option.choices, " | "))
            : fmt::format("{}, {} to {}", option.kind == OptionKind::kInteger ? "integer" : "number", option.least,
                          option.most);
    text += fmt::format("{}{} ({}, default {})", text.empty() ? "" : ", ", option.name, range, option.default_value);
  }
  return text;
}

absl::Status CheckOptions(std::string_view planner, Options options, const model::OptionValues& given) {
  for (const auto& [name, value] : given) {
    const auto option = std::ranges::find(options, name, &Option::name);
    if (option == options.end()) return UnknownOption(planner, options, name);
    MEDLEY_RETURN_IF_ERROR(CheckValue(*option, value));
  }
  return absl::OkStatus();
}

}  // namespace medley::sched
