#include "common/cel/check.h"

#include "common/base/status.h"
#include "common/cel/functions.h"

namespace medley::cel {
namespace {

using Op = Expression::Op;

bool IsDyn(const TypePtr& type) { return type == nullptr || type->kind == Kind::kDyn; }
bool IsNumber(Kind kind) { return kind == Kind::kInt || kind == Kind::kUint || kind == Kind::kDouble; }
bool IsTree(Kind kind) { return kind == Kind::kMap || kind == Kind::kObject; }

class Checker {
 public:
  Checker(std::span<const Variable> variables, size_t slots) : types_(slots) {
    for (size_t i = 0; i < variables.size(); ++i) types_[i] = variables[i].type;
  }

  // Null: dyn.
  TypePtr Of(const Expression& e) {
    switch (e.op) {
      case Op::kLiteral:
        return Simple(e.literal.kind());
      case Op::kVariable:
        return types_[e.slot];
      case Op::kSelect:
      case Op::kHas:
        return Select(e);
      case Op::kIndex:
        return Index(e);
      case Op::kCall:
        for (const ExpressionPtr& arg : e.args) Of(*arg);
        return e.function->result == Kind::kDyn ? nullptr : Simple(e.function->result);
      case Op::kList:
        for (const ExpressionPtr& arg : e.args) Of(*arg);
        return Simple(Kind::kList);
      case Op::kMap:
        for (const ExpressionPtr& arg : e.args) Of(*arg);
        return Simple(Kind::kMap);
      case Op::kConditional:
        return Conditional(e);
      case Op::kOr:
      case Op::kAnd:
      case Op::kNot:
        for (const ExpressionPtr& arg : e.args) WantBool(Of(*arg));
        return Simple(Kind::kBool);
      case Op::kNegate:
        return Of(*e.args[0]);
      case Op::kAdd:
      case Op::kSubtract:
      case Op::kMultiply:
      case Op::kDivide:
      case Op::kModulo:
        return Calculation(e);
      case Op::kEqual:
      case Op::kNotEqual:
      case Op::kLess:
      case Op::kLessEqual:
      case Op::kGreater:
      case Op::kGreaterEqual:
        Comparison(e);
        return Simple(Kind::kBool);
      case Op::kIn:
        Of(*e.args[0]);
        Of(*e.args[1]);
        return Simple(Kind::kBool);
      case Op::kAll:
      case Op::kExists:
      case Op::kExistsOne:
      case Op::kFilter:
      case Op::kTransform:
        return Macro(e);
    }
    return nullptr;
  }

  const absl::Status& status() const { return status_; }

 private:
  void Fail(const std::string& what) {
    if (status_.ok()) status_ = base::InvalidArgument("{}", what);
  }
  void WantBool(const TypePtr& type) {
    if (!IsDyn(type) && type->kind != Kind::kBool) {
      Fail("expected a bool, found " + std::string(TypeName(type->kind)));
    }
  }

  TypePtr Select(const Expression& e) {
    TypePtr target = Of(*e.args[0]);
    if (!IsDyn(target) && target->kind == Kind::kOptional) target = target->element;
    TypePtr field;
    if (!IsDyn(target)) {
      if (target->kind == Kind::kObject) {
        const auto found = target->fields.find(e.name);
        if (found == target->fields.end()) {
          Fail("undefined field '" + e.name + "'");
        } else {
          field = found->second.type;
        }
      } else if (target->kind == Kind::kMap) {
        field = target->element;
      } else {
        Fail(std::string("type '") + std::string(TypeName(target->kind)) + "' does not support field selection");
      }
    }
    return e.op == Op::kHas ? Simple(Kind::kBool) : field;
  }

  TypePtr Index(const Expression& e) {
    const TypePtr target = Of(*e.args[0]);
    Of(*e.args[1]);
    if (IsDyn(target)) return nullptr;
    if (target->kind == Kind::kObject) return nullptr;
    if (target->kind != Kind::kList && target->kind != Kind::kMap) Fail("only lists and maps have an index");
    return target->element;
  }

  TypePtr Conditional(const Expression& e) {
    WantBool(Of(*e.args[0]));
    TypePtr yes = Of(*e.args[1]);
    const TypePtr no = Of(*e.args[2]);
    return IsDyn(yes) || IsDyn(no) || yes->kind != no->kind || yes->element != no->element ? nullptr : yes;
  }

  TypePtr Calculation(const Expression& e) {
    const TypePtr left = Of(*e.args[0]);
    const TypePtr right = Of(*e.args[1]);
    if (IsDyn(left) || IsDyn(right)) return nullptr;
    const bool times = left->kind == Kind::kTimestamp || right->kind == Kind::kTimestamp;
    if (times) return nullptr;
    if (left->kind != right->kind) {
      Fail("found no matching overload for an operator applied to '(" + std::string(TypeName(left->kind)) + ", " +
           std::string(TypeName(right->kind)) + ")'");
    }
    return left;
  }

  void Comparison(const Expression& e) {
    const TypePtr left = Of(*e.args[0]);
    const TypePtr right = Of(*e.args[1]);
    if (IsDyn(left) || IsDyn(right)) return;
    const bool equality = e.op == Op::kEqual || e.op == Op::kNotEqual;
    const bool null = left->kind == Kind::kNull || right->kind == Kind::kNull;
    // As in Kubernetes, numbers of two types are ordered, but not equal.
    const bool numbers = !equality && IsNumber(left->kind) && IsNumber(right->kind);
    const bool trees = IsTree(left->kind) && IsTree(right->kind);
    if (left->kind == right->kind || numbers || trees || (equality && null)) return;
    Fail("found no matching overload for a comparison applied to '(" + std::string(TypeName(left->kind)) + ", " +
         std::string(TypeName(right->kind)) + ")'");
  }

  TypePtr Macro(const Expression& e) {
    const TypePtr range = Of(*e.args[0]);
    TypePtr item;
    if (!IsDyn(range)) {
      if (range->kind == Kind::kList) item = range->element;
      if (IsTree(range->kind)) item = Simple(Kind::kString);
      if (range->kind != Kind::kList && !IsTree(range->kind)) Fail("a macro needs a list or a map");
    }
    types_[e.slot] = item;
    const TypePtr result = Of(*e.args[1]);
    if (e.op != Op::kTransform || e.args.size() > 2) WantBool(result);
    if (e.op == Op::kFilter) return ListOf(item);
    if (e.op == Op::kTransform) return ListOf(e.args.size() > 2 ? Of(*e.args[2]) : result);
    return Simple(Kind::kBool);
  }

  std::vector<TypePtr> types_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<TypePtr> Check(const Expression& expression, std::span<const Variable> variables, size_t slots) {
  Checker checker(variables, slots);
  TypePtr type = checker.Of(expression);
  if (!checker.status().ok()) return checker.status();
  return type == nullptr ? Simple(Kind::kDyn) : type;
}

}  // namespace medley::cel
