// "$(NAME)" in commands, arguments and variables, as Kubernetes expands it.
//
// "$(NAME)" becomes the value, or stays as it is when there is none; "$$" becomes "$", so "$$(NAME)" is
// the way to write "$(NAME)"; any other "$" stays. One pass: values are not expanded again. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace medley::kube {

using VariableLookup = std::function<std::optional<std::string>(std::string_view name)>;

std::string ExpandVariables(std::string_view text, const VariableLookup& lookup);

}  // namespace medley::kube
