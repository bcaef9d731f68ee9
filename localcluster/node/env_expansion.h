// Expands "$(NAME)" in commands, arguments and variables, as Kubernetes does.
//
// "$(NAME)" becomes the variable's value, or stays as it is if there is no such variable. "$$" becomes "$", so
// "$$(NAME)" gives "$(NAME)". Any other "$" stays. Values are not expanded again. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace medley::localcluster {

using VariableLookup = std::function<std::optional<std::string>(std::string_view name)>;

std::string ExpandVariables(std::string_view text, const VariableLookup& lookup);

}  // namespace medley::localcluster
