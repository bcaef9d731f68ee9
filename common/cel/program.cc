#include "common/cel/program.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/cel/check.h"
#include "common/cel/evaluate.h"
#include "common/cel/parser.h"

namespace medley::cel {

absl::StatusOr<Program> Program::Compile(std::string_view text, std::vector<Variable> variables, Kind result) {
  MEDLEY_ASSIGN_OR_RETURN(Parsed parsed, Parse(text, variables));
  MEDLEY_ASSIGN_OR_RETURN(const TypePtr type, Check(*parsed.root, variables, parsed.slots));
  if (result != Kind::kDyn && type->kind != Kind::kDyn && type->kind != result) {
    return base::InvalidArgument("must evaluate to a {}, evaluates to a {}", TypeName(result), TypeName(type->kind));
  }
  Program program;
  program.root_ = std::move(parsed.root);
  program.slots_ = parsed.slots;
  program.uses_ = std::move(parsed.uses);
  return program;
}

Value Program::Evaluate(std::span<const Value> values, Budget& budget) const {
  std::vector<Value> frame(slots_);
  std::copy_n(values.begin(), std::min(values.size(), frame.size()), frame.begin());
  return cel::Evaluate(*root_, frame, budget);
}

}  // namespace medley::cel
