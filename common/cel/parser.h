// Reads an expression: the grammar of CEL without messages of protobuf. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <span>

#include "common/cel/expression.h"

namespace medley::cel {

inline constexpr size_t kLongestExpression = 100'000;  // bytes
inline constexpr int kDeepestExpression = 250;         // of nested operands, as in Kubernetes

struct Parsed {
  ExpressionPtr root;
  size_t slots = 0;        // of all variables, also of macros
  std::vector<bool> uses;  // of each of `variables`
};

// Errors: InvalidArgument: "character 7: undeclared reference to 'selv'".
absl::StatusOr<Parsed> Parse(std::string_view text, std::span<const Variable> variables);

}  // namespace medley::cel
