// The syntax tree of an expression. Macros (has, all, map, ...) are nodes of their own; names of variables are places
// in the frame of an evaluation. Immutable once parsed, so that threads may share it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/cel/value.h"

namespace re2 {
class RE2;
}

namespace medley::cel {

struct Function;  // functions.h

struct Expression {
  enum class Op {
    kLiteral,
    kVariable,     // slot
    kSelect,       // args[0].name
    kHas,          // has(args[0].name)
    kIndex,        // args[0][args[1]]
    kCall,         // function of args, the target first
    kList,         // [args...]
    kMap,          // {args[0]: args[1], ...}
    kConditional,  // args[0] ? args[1] : args[2]
    kOr,
    kAnd,
    kNot,
    kNegate,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kIn,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kModulo,
    // Macros over the items of args[0]: slot holds the item, args[1] is the predicate or the transformation.
    kAll,
    kExists,
    kExistsOne,
    kFilter,
    kTransform,  // map(x, t) and, with args[2] as the transformation, map(x, p, t)
  };

  Op op = Op::kLiteral;
  Value literal;
  std::string name;
  size_t slot = 0;
  const Function* function = nullptr;
  std::shared_ptr<const re2::RE2> pattern;  // of matches() with a literal
  std::vector<std::unique_ptr<Expression>> args;
  int depth = 1;
};
using ExpressionPtr = std::unique_ptr<Expression>;

// What the variables of a program are called and of which types they are. Variable i has slot i.
struct Variable {
  std::string name;
  TypePtr type;
};

}  // namespace medley::cel
