#include "common/cel/evaluate.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <array>

#include "common/cel/functions.h"
#include "common/cel/text_functions.h"

namespace medley::cel {
namespace {

using Op = Expression::Op;

constexpr uint64_t kListCost = 10;  // as in Kubernetes
constexpr uint64_t kMapCost = 30;

class Evaluation {
 public:
  Evaluation(std::span<Value> frame, Budget& budget) : frame_(frame), budget_(budget) {}

  Value Of(const Expression& e) {
    if (e.op == Op::kLiteral) return e.literal;
    if (!budget_.Spend(1)) return SpentOut();
    switch (e.op) {
      case Op::kLiteral:
        return e.literal;
      case Op::kVariable:
        return frame_[e.slot];
      case Op::kSelect:
      case Op::kHas:
        return Select(e);
      case Op::kIndex:
        return Index(Of(*e.args[0]), Of(*e.args[1]));
      case Op::kCall:
        return Call(e);
      case Op::kList:
        return List(e);
      case Op::kMap:
        return Map(e);
      case Op::kConditional:
        return Conditional(e);
      case Op::kOr:
        return Junction(e, true);
      case Op::kAnd:
        return Junction(e, false);
      case Op::kNot: {
        const Value operand = Of(*e.args[0]);
        if (operand.is_error()) return operand;
        const auto* holds = operand.As<bool>();
        return holds == nullptr ? Value::NoOverload() : Value(!*holds);
      }
      case Op::kNegate:
        return Negate(Of(*e.args[0]));
      case Op::kAdd:
        return Binary(e, Arithmetic::kAdd);
      case Op::kSubtract:
        return Binary(e, Arithmetic::kSubtract);
      case Op::kMultiply:
        return Binary(e, Arithmetic::kMultiply);
      case Op::kDivide:
        return Binary(e, Arithmetic::kDivide);
      case Op::kModulo:
        return Binary(e, Arithmetic::kModulo);
      case Op::kEqual:
      case Op::kNotEqual:
      case Op::kLess:
      case Op::kLessEqual:
      case Op::kGreater:
      case Op::kGreaterEqual:
      case Op::kIn:
        return Relation(e);
      case Op::kAll:
      case Op::kExists:
      case Op::kExistsOne:
      case Op::kFilter:
      case Op::kTransform:
        return Macro(e);
    }
    return Value::NoOverload();
  }

 private:
  Value Binary(const Expression& e, Arithmetic operation) {
    const Value left = Of(*e.args[0]);
    return Calculate(operation, left, Of(*e.args[1]), budget_);
  }

  Value Select(const Expression& e) {
    Value target = Of(*e.args[0]);
    if (target.is_error()) return target;
    if (const auto* optional = target.As<Value::Optional>(); optional != nullptr && optional->value != nullptr) {
      target = Value(*optional->value);
    }
    if (!target.is_map()) return Value::NoOverload();
    Value found;
    const bool exists = target.Find(e.name, true, found);
    if (e.op == Op::kHas) return found.is_error() ? found : Value(exists);
    return exists ? found : Value::Failed("no such key: " + e.name);
  }

  static Value Index(const Value& target, const Value& key) {
    if (target.is_error()) return target;
    if (key.is_error()) return key;
    if (target.is_map()) {
      Value found;
      if (key.kind() == Kind::kString && target.Find(key.text(), false, found)) return found;
      if (const auto* made = target.As<Value::Map>()) {
        Budget lookup((*made)->all.size() * 16 + 64);
        for (const auto& [each, value] : (*made)->all) {
          if (Equal(each, key, lookup)) return value;
        }
      }
      return Value::Failed("no such key: " + (key.kind() == Kind::kString ? std::string(key.text()) : "key"));
    }
    if (!target.is_list()) return Value::NoOverload();
    const auto* index = key.As<int64_t>();
    if (index == nullptr) return Value::NoOverload();
    if (*index < 0 || static_cast<size_t>(*index) >= target.size()) {
      return Value::Failed(fmt::format("index out of bounds: {}", *index));
    }
    return target.Item(static_cast<size_t>(*index));
  }

  Value Call(const Expression& e) {
    std::array<Value, 4> args;
    for (size_t i = 0; i < e.args.size(); ++i) {
      args[i] = Of(*e.args[i]);
      if (args[i].is_error()) return args[i];
    }
    if (e.pattern != nullptr && args[0].kind() == Kind::kString) {
      const std::string_view text = args[0].text();
      if (!budget_.Spend((TextCost(text) + 1) * (e.pattern->pattern().size() / 4 + 1))) return SpentOut();
      return Value(RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *e.pattern));
    }
    return e.function->call(std::span<const Value>(args).first(e.args.size()), budget_);
  }

  Value List(const Expression& e) {
    if (!budget_.Spend(kListCost)) return SpentOut();
    auto items = std::make_shared<std::vector<Value>>();
    items->reserve(e.args.size());
    for (const ExpressionPtr& arg : e.args) {
      items->push_back(Of(*arg));
      if (items->back().is_error()) return items->back();
    }
    return Value(Value::List(std::move(items)));
  }

  Value Map(const Expression& e) {
    if (!budget_.Spend(kMapCost)) return SpentOut();
    auto entries = std::make_shared<Value::Entries>();
    for (size_t i = 0; i + 1 < e.args.size(); i += 2) {
      Value key = Of(*e.args[i]);
      if (key.is_error()) return key;
      Value value = Of(*e.args[i + 1]);
      if (value.is_error()) return value;
      for (const auto& [other, ignored] : entries->all) {
        if (Equal(other, key, budget_)) return Value::Failed("Failed with repeated key");
      }
      entries->all.emplace_back(std::move(key), std::move(value));
    }
    return Value(Value::Map(std::move(entries)));
  }

  Value Conditional(const Expression& e) {
    Value condition = Of(*e.args[0]);
    if (condition.is_error()) return condition;
    const auto* holds = condition.As<bool>();
    if (holds == nullptr) return Value::NoOverload();
    return Of(*e.args[*holds ? 1 : 2]);
  }

  // || with `decides` true, && with false.
  Value Junction(const Expression& e, bool decides) {
    Value error;
    for (const ExpressionPtr& arg : e.args) {
      Value operand = Of(*arg);
      const auto* holds = operand.As<bool>();
      if (holds != nullptr && *holds == decides) return operand;
      if (operand.is_error() && operand.error().fatal) return operand;
      if (holds == nullptr && !error.is_error()) error = operand.is_error() ? std::move(operand) : Value::NoOverload();
    }
    return error.is_error() ? error : Value(!decides);
  }

  Value Relation(const Expression& e) {
    const Value left = Of(*e.args[0]);
    const Value right = Of(*e.args[1]);
    if (left.is_error()) return left;
    if (right.is_error()) return right;
    Value result = Relate(e.op, left, right);
    return budget_.spent_out() ? SpentOut() : result;
  }

  Value Relate(Op op, const Value& left, const Value& right) {
    if (op == Op::kEqual) return Value(Equal(left, right, budget_));
    if (op == Op::kNotEqual) return Value(!Equal(left, right, budget_));
    if (op == Op::kIn) return In(left, right);
    bool ordered = true;
    const int order = Compare(left, right, ordered);
    if (!ordered) {
      const bool numbers = left.kind() == Kind::kDouble || right.kind() == Kind::kDouble;
      const bool same = left.kind() == right.kind();
      return numbers && same ? Value::Failed("NaN values cannot be ordered") : Value::NoOverload();
    }
    if (op == Op::kLess) return Value(order < 0);
    if (op == Op::kLessEqual) return Value(order <= 0);
    if (op == Op::kGreater) return Value(order > 0);
    return Value(order >= 0);
  }

  Value In(const Value& item, const Value& in) {
    if (in.is_map()) {
      Value ignored;
      return Value(item.kind() == Kind::kString && in.Find(item.text(), false, ignored));
    }
    if (!in.is_list()) return Value::NoOverload();
    for (size_t i = 0; i < in.size() && !budget_.spent_out(); ++i) {
      if (Equal(in.Item(i), item, budget_)) return Value(true);
    }
    return Value(false);
  }

  Value Macro(const Expression& e) {
    const Value range = Of(*e.args[0]);
    if (range.is_error()) return range;
    if (!range.is_list() && !range.is_map()) return Value::NoOverload();
    if (e.op == Op::kFilter || e.op == Op::kTransform) return Collect(e, range);
    return Quantify(e, range);
  }

  // all, exists and exists_one. The first two hide the error of an item if another decides.
  Value Quantify(const Expression& e, const Value& range) {
    Value error;
    int64_t held = 0;
    Value decided;
    range.ForEach([&](const Value& item) {
      frame_[e.slot] = item;
      Value result = Of(*e.args[1]);
      const auto* holds = result.As<bool>();
      if (holds == nullptr) {
        const bool fatal = result.is_error() && result.error().fatal;
        if (!error.is_error() || fatal) error = result.is_error() ? std::move(result) : Value::NoOverload();
        return !fatal && e.op != Op::kExistsOne;
      }
      held += *holds ? 1 : 0;
      if ((e.op == Op::kAll && !*holds) || (e.op == Op::kExists && *holds)) decided = Value(*holds);
      return decided.kind() == Kind::kNull;
    });
    if (error.is_error() && error.error().fatal) return error;
    if (decided.kind() != Kind::kNull) return decided;
    if (error.is_error()) return error;
    return Value(e.op == Op::kAll || (e.op == Op::kExistsOne && held == 1));
  }

  // filter and map.
  Value Collect(const Expression& e, const Value& range) {
    if (!budget_.Spend(kListCost)) return SpentOut();
    auto items = std::make_shared<std::vector<Value>>();
    Value error;
    const bool conditional = e.op == Op::kFilter || e.args.size() > 2;
    range.ForEach([&](const Value& item) {
      frame_[e.slot] = item;
      Value result = Of(*e.args[1]);
      if (conditional && !result.is_error()) {
        const auto* holds = result.As<bool>();
        if (holds == nullptr) result = Value::NoOverload();
        if (holds != nullptr && !*holds) return true;
        if (holds != nullptr) result = e.op == Op::kFilter ? item : Of(*e.args[2]);
      }
      if (result.is_error()) {
        error = std::move(result);
        return false;
      }
      items->push_back(std::move(result));
      return true;
    });
    return error.is_error() ? error : Value(Value::List(std::move(items)));
  }

  std::span<Value> frame_;
  Budget& budget_;
};

}  // namespace

Value Evaluate(const Expression& expression, std::span<Value> frame, Budget& budget) {
  return Evaluation(frame, budget).Of(expression);
}

}  // namespace medley::cel
