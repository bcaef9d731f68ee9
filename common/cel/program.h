// An expression of CEL, the Common Expression Language, in which CustomResourceDefinitions write their rules
// (x-kubernetes-validations): compiled once, evaluated often.
//
//   const auto program = cel::Program::Compile("self.min <= self.max", {{"self", type}});
//   cel::Budget budget(cel::kCallBudget);
//   const cel::Value holds = program->Evaluate({cel::Value::Read(json, type.get())}, budget);
//
// Immutable and thread-safe. docs/design/schema.md says which part of CEL it knows.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "common/cel/expression.h"

namespace medley::cel {

// As in Kubernetes: of one expression, and of all expressions about one object together.
inline constexpr uint64_t kCallBudget = 1'000'000;
inline constexpr uint64_t kObjectBudget = 10'000'000;

class Program {
 public:
  // Errors: InvalidArgument that says where the text is no expression and why, or that its value has another type
  // than `result` (kDyn: any).
  static absl::StatusOr<Program> Compile(std::string_view text, std::vector<Variable> variables, Kind result);

  // Whether the expression names variable `index`.
  bool Uses(size_t index) const { return uses_[index]; }
  // `values`: of all variables, in their order. An Error where the expression has no value.
  Value Evaluate(std::span<const Value> values, Budget& budget) const;

 private:
  Program() = default;

  std::shared_ptr<const Expression> root_;
  size_t slots_ = 0;
  std::vector<bool> uses_;
};

}  // namespace medley::cel
