// Evaluates syntax trees. Pure.
#pragma once

#include <span>

#include "common/cel/budget.h"
#include "common/cel/expression.h"

namespace medley::cel {

// `frame`: the values of all variables, those of macros behind the others. The result is an Error where CEL has one: as
// in CEL, || and && hide the error of an operand if another decides.
Value Evaluate(const Expression& expression, std::span<Value> frame, Budget& budget);

}  // namespace medley::cel
