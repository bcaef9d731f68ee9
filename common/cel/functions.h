// The functions of CEL's standard library and of Kubernetes' extensions. Pure.
#pragma once

#include <span>
#include <string_view>

#include "common/cel/budget.h"
#include "common/cel/value.h"

namespace medley::cel {

struct Function {
  std::string_view name;
  bool member;         // called as target.name(args)
  size_t least, most;  // arguments, without the target
  Kind result;
  // `args` begins with the target; none is an Error. Returns an Error where the types do not fit.
  Value (*call)(std::span<const Value> args, Budget& budget);
};

// Null: there is none with this number of arguments.
const Function* FindFunction(std::string_view name, bool member, size_t arguments);

// The operators +, -, *, / and %.
enum class Arithmetic { kAdd, kSubtract, kMultiply, kDivide, kModulo };
Value Calculate(Arithmetic operation, const Value& a, const Value& b, Budget& budget);
Value Negate(const Value& value);

// The error of a budget that is spent.
Value SpentOut();

}  // namespace medley::cel
