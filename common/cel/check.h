// Checks the types of an expression before it is evaluated, as far as the schema gives them. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <span>

#include "common/cel/expression.h"

namespace medley::cel {

// The type of the expression. Errors: InvalidArgument: "undefined field 'nmae'", "found no matching overload ...".
absl::StatusOr<TypePtr> Check(const Expression& expression, std::span<const Variable> variables, size_t slots);

}  // namespace medley::cel
