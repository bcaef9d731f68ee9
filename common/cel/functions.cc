#include "common/cel/functions.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "common/base/clock.h"
#include "common/base/go_text.h"
#include "common/base/quantity.h"
#include "common/base/utf8.h"
#include "common/cel/duration.h"
#include "common/cel/text_functions.h"

namespace medley::cel {
namespace {

using Args = std::span<const Value>;

constexpr double kInt64End = 9223372036854775808.0;    // 2^63
constexpr double kUint64End = 18446744073709551616.0;  // 2^64

Value NoConversion(const Value& from, Kind to) {
  return Value::Failed(fmt::format("type conversion error from '{}' to '{}'", TypeName(from.kind()), TypeName(to)));
}

Value ToInt(Args args, Budget&) {
  const Value& from = args[0];
  if (from.kind() == Kind::kInt) return from;
  if (const auto* u = from.As<uint64_t>()) {
    return *u <= INT64_MAX ? Value(static_cast<int64_t>(*u)) : Value::Failed("integer overflow");
  }
  if (const auto* d = from.As<double>()) {
    const bool fits = *d > -kInt64End && *d < kInt64End;
    return fits ? Value(static_cast<int64_t>(*d)) : Value::Failed("integer overflow");
  }
  if (const auto* t = from.As<Value::Timestamp>()) return Value(t->nanoseconds / 1'000'000'000);
  if (const auto* d = from.As<Value::Duration>()) return Value(d->nanoseconds);
  int64_t number = 0;
  if (from.kind() == Kind::kString && absl::SimpleAtoi(std::string(from.text()), &number)) return Value(number);
  return NoConversion(from, Kind::kInt);
}

Value ToUint(Args args, Budget&) {
  const Value& from = args[0];
  if (from.kind() == Kind::kUint) return from;
  if (const auto* i = from.As<int64_t>()) {
    return *i >= 0 ? Value(static_cast<uint64_t>(*i)) : Value::Failed("unsigned integer overflow");
  }
  if (const auto* d = from.As<double>()) {
    const bool fits = *d >= 0 && *d < kUint64End;
    return fits ? Value(static_cast<uint64_t>(*d)) : Value::Failed("unsigned integer overflow");
  }
  uint64_t number = 0;
  if (from.kind() == Kind::kString && absl::SimpleAtoi(std::string(from.text()), &number)) return Value(number);
  return NoConversion(from, Kind::kUint);
}

Value ToDouble(Args args, Budget&) {
  const Value& from = args[0];
  if (from.kind() == Kind::kDouble) return from;
  if (const auto* i = from.As<int64_t>()) return Value(static_cast<double>(*i));
  if (const auto* u = from.As<uint64_t>()) return Value(static_cast<double>(*u));
  double number = 0;
  const std::string text(from.text());
  const bool blank = text.empty() || absl::ascii_isspace(static_cast<unsigned char>(text.front())) ||
                     absl::ascii_isspace(static_cast<unsigned char>(text.back()));
  if (from.kind() == Kind::kString && !blank && absl::SimpleAtod(text, &number)) return Value(number);
  return NoConversion(from, Kind::kDouble);
}

Value ToBool(Args args, Budget&) {
  const Value& from = args[0];
  if (from.kind() == Kind::kBool) return from;
  const std::string_view text = from.text();
  for (const std::string_view yes : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (from.kind() == Kind::kString && text == yes) return Value(true);
  }
  for (const std::string_view no : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (from.kind() == Kind::kString && text == no) return Value(false);
  }
  return NoConversion(from, Kind::kBool);
}

Value ToText(Args args, Budget&) {
  const Value& from = args[0];
  if (from.kind() == Kind::kString) return from;
  if (const auto* b = from.As<bool>()) return Value::OwnedText(*b ? "true" : "false");
  if (const auto* i = from.As<int64_t>()) return Value::OwnedText(fmt::format("{}", *i));
  if (const auto* u = from.As<uint64_t>()) return Value::OwnedText(fmt::format("{}", *u));
  if (const auto* d = from.As<double>()) return Value::OwnedText(base::GoNumber(*d));
  if (const auto* d = from.As<Value::Duration>()) return Value::OwnedText(FormatDuration(d->nanoseconds));
  if (const auto* t = from.As<Value::Timestamp>()) {
    return Value::OwnedText(base::FormatTime(base::WallTime(base::nanoseconds(t->nanoseconds))));
  }
  if (const auto* b = from.As<Value::Bytes>()) {
    if (base::IsUtf8(*b->data)) return Value::OwnedText(*b->data);
    return Value::Failed("invalid UTF-8 in bytes, cannot convert to string");
  }
  return NoConversion(from, Kind::kString);
}

Value ToBytes(Args args, Budget&) {
  if (args[0].kind() == Kind::kBytes) return args[0];
  if (args[0].kind() != Kind::kString) return NoConversion(args[0], Kind::kBytes);
  return Value(Value::Bytes{std::make_shared<const std::string>(args[0].text())});
}

Value ToDuration(Args args, Budget&) {
  if (args[0].kind() == Kind::kDuration) return args[0];
  if (const auto* i = args[0].As<int64_t>()) return Value(Value::Duration{*i});
  int64_t nanoseconds = 0;
  if (args[0].kind() == Kind::kString && ParseDuration(args[0].text(), nanoseconds)) {
    return Value(Value::Duration{nanoseconds});
  }
  return NoConversion(args[0], Kind::kDuration);
}

Value ToTimestamp(Args args, Budget&) {
  if (args[0].kind() == Kind::kTimestamp) return args[0];
  if (args[0].kind() == Kind::kString) {
    const auto parsed = base::ParseTime(std::string(args[0].text()));
    if (parsed.ok()) return Value(Value::Timestamp{parsed->time_since_epoch().count()});
  }
  return NoConversion(args[0], Kind::kTimestamp);
}

Value TypeOfValue(Args args, Budget&) { return Value(args[0].kind()); }
Value ToDyn(Args args, Budget&) { return args[0]; }

Value SizeOf(Args args, Budget& budget) {
  const Value& of = args[0];
  if (of.kind() == Kind::kString) {
    if (!budget.Spend(TextCost(of.text()))) return SpentOut();
    return Value(Characters(of.text()));
  }
  if (const auto* bytes = of.As<Value::Bytes>()) return Value(static_cast<int64_t>(bytes->data->size()));
  if (of.is_list() || of.is_map()) return Value(static_cast<int64_t>(of.size()));
  return Value::NoOverload();
}

template <int64_t kUnit>
Value DurationIn(Args args, Budget&) {
  const auto* duration = args[0].As<Value::Duration>();
  return duration == nullptr ? Value::NoOverload() : Value(duration->nanoseconds / kUnit);
}
Value MillisecondsOf(Args args, Budget&) {
  const auto* duration = args[0].As<Value::Duration>();
  return duration == nullptr ? Value::NoOverload() : Value(duration->nanoseconds / 1'000'000 % 1000);
}

Value ToQuantity(Args args, Budget&) {
  const auto parsed = base::ParseQuantity(args[0].text());
  if (args[0].kind() != Kind::kString) return Value::NoOverload();
  if (!parsed.ok()) return Value::Failed(base::GoQuote(args[0].text()) + " is not a quantity");
  return Value(Value::Quantity{*parsed});
}
Value IsQuantity(Args args, Budget&) {
  if (args[0].kind() != Kind::kString) return Value::NoOverload();
  return Value(base::ParseQuantity(args[0].text()).ok());
}
template <int kWant>
Value CompareQuantities(Args args, Budget&) {
  const auto* a = args[0].As<Value::Quantity>();
  const auto* b = args[1].As<Value::Quantity>();
  if (a == nullptr || b == nullptr) return Value::NoOverload();
  const int64_t order = a->value < b->value ? -1 : a->value > b->value ? 1 : 0;
  return kWant == 0 ? Value(order) : Value(order == kWant);
}
Value FloatOf(Args args, Budget&) {
  const auto* quantity = args[0].As<Value::Quantity>();
  return quantity == nullptr ? Value::NoOverload() : Value(quantity->value);
}

Value HasValue(Args args, Budget&) {
  const auto* optional = args[0].As<Value::Optional>();
  return optional == nullptr ? Value::NoOverload() : Value(optional->value != nullptr);
}
Value ValueOf(Args args, Budget&) {
  const auto* optional = args[0].As<Value::Optional>();
  if (optional == nullptr) return Value::NoOverload();
  return optional->value == nullptr ? Value::Failed("optional.none() dereference") : *optional->value;
}
Value ValueOr(Args args, Budget&) {
  const auto* optional = args[0].As<Value::Optional>();
  if (optional == nullptr) return Value::NoOverload();
  return optional->value == nullptr ? args[1] : *optional->value;
}

// Folds a list: `better` decides which of two items stays.
Value Extreme(const Value& list, int sign, std::string_view name, Budget& budget) {
  if (!list.is_list()) return Value::NoOverload();
  if (list.size() == 0) return Value::Failed(fmt::format("{} called on empty list", name));
  if (!budget.Spend(list.size())) return SpentOut();
  Value best = list.Item(0);
  bool ordered = true;
  for (size_t i = 1; i < list.size(); ++i) {
    Value next = list.Item(i);
    if (Compare(next, best, ordered) * sign > 0) best = std::move(next);
  }
  return ordered ? best : Value::NoOverload();
}
Value Least(Args args, Budget& budget) { return Extreme(args[0], -1, "min", budget); }
Value Greatest(Args args, Budget& budget) { return Extreme(args[0], 1, "max", budget); }

Value IsSorted(Args args, Budget& budget) {
  if (!args[0].is_list()) return Value::NoOverload();
  if (!budget.Spend(args[0].size())) return SpentOut();
  bool ordered = true;
  for (size_t i = 1; i < args[0].size(); ++i) {
    if (Compare(args[0].Item(i - 1), args[0].Item(i), ordered) > 0) return Value(false);
  }
  return ordered ? Value(true) : Value::NoOverload();
}

Value Sum(Args args, Budget& budget) {
  if (!args[0].is_list()) return Value::NoOverload();
  if (args[0].size() == 0) return Value(int64_t{0});
  Value total = args[0].Item(0);
  for (size_t i = 1; i < args[0].size() && !total.is_error(); ++i) {
    total = budget.Spend(1) ? Calculate(Arithmetic::kAdd, total, args[0].Item(i), budget) : SpentOut();
  }
  return total;
}

constexpr std::array kFunctions = {
    Function{"size", false, 1, 1, Kind::kInt, SizeOf},
    Function{"size", true, 0, 0, Kind::kInt, SizeOf},
    Function{"type", false, 1, 1, Kind::kType, TypeOfValue},
    Function{"dyn", false, 1, 1, Kind::kDyn, ToDyn},
    Function{"int", false, 1, 1, Kind::kInt, ToInt},
    Function{"uint", false, 1, 1, Kind::kUint, ToUint},
    Function{"double", false, 1, 1, Kind::kDouble, ToDouble},
    Function{"bool", false, 1, 1, Kind::kBool, ToBool},
    Function{"string", false, 1, 1, Kind::kString, ToText},
    Function{"bytes", false, 1, 1, Kind::kBytes, ToBytes},
    Function{"duration", false, 1, 1, Kind::kDuration, ToDuration},
    Function{"timestamp", false, 1, 1, Kind::kTimestamp, ToTimestamp},
    Function{"matches", false, 2, 2, Kind::kBool, Matches},
    Function{"matches", true, 1, 1, Kind::kBool, Matches},
    Function{"startsWith", true, 1, 1, Kind::kBool, StartsWith},
    Function{"endsWith", true, 1, 1, Kind::kBool, EndsWith},
    Function{"contains", true, 1, 1, Kind::kBool, Contains},
    Function{"substring", true, 1, 2, Kind::kString, Substring},
    Function{"charAt", true, 1, 1, Kind::kString, CharacterAt},
    Function{"indexOf", true, 1, 2, Kind::kInt, IndexOf},
    Function{"lastIndexOf", true, 1, 2, Kind::kInt, LastIndexOf},
    Function{"split", true, 1, 2, Kind::kList, Split},
    Function{"join", true, 0, 1, Kind::kString, JoinTexts},
    Function{"replace", true, 2, 3, Kind::kString, Replace},
    Function{"trim", true, 0, 0, Kind::kString, Trim},
    Function{"lowerAscii", true, 0, 0, Kind::kString, LowerAscii},
    Function{"upperAscii", true, 0, 0, Kind::kString, UpperAscii},
    Function{"find", true, 1, 1, Kind::kString, FindText},
    Function{"getHours", true, 0, 0, Kind::kInt, DurationIn<3'600'000'000'000>},
    Function{"getMinutes", true, 0, 0, Kind::kInt, DurationIn<60'000'000'000>},
    Function{"getSeconds", true, 0, 0, Kind::kInt, DurationIn<1'000'000'000>},
    Function{"getMilliseconds", true, 0, 0, Kind::kInt, MillisecondsOf},
    Function{"quantity", false, 1, 1, Kind::kQuantity, ToQuantity},
    Function{"isQuantity", false, 1, 1, Kind::kBool, IsQuantity},
    Function{"isGreaterThan", true, 1, 1, Kind::kBool, CompareQuantities<1>},
    Function{"isLessThan", true, 1, 1, Kind::kBool, CompareQuantities<-1>},
    Function{"compareTo", true, 1, 1, Kind::kInt, CompareQuantities<0>},
    Function{"asApproximateFloat", true, 0, 0, Kind::kDouble, FloatOf},
    Function{"hasValue", true, 0, 0, Kind::kBool, HasValue},
    Function{"value", true, 0, 0, Kind::kDyn, ValueOf},
    Function{"orValue", true, 1, 1, Kind::kDyn, ValueOr},
    Function{"min", true, 0, 0, Kind::kDyn, Least},
    Function{"max", true, 0, 0, Kind::kDyn, Greatest},
    Function{"sum", true, 0, 0, Kind::kDyn, Sum},
    Function{"isSorted", true, 0, 0, Kind::kBool, IsSorted},
};

constexpr char kIntOverflow[] = "integer overflow";

template <typename Integer>
Value Calculate(Arithmetic operation, Integer a, Integer b, const char* overflows) {
  Integer result = 0;
  bool overflow = false;
  switch (operation) {
    case Arithmetic::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Arithmetic::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Arithmetic::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Arithmetic::kDivide:
    case Arithmetic::kModulo:
      if (b == 0) return Value::Failed(operation == Arithmetic::kDivide ? "division by zero" : "modulus by zero");
      if constexpr (std::is_signed_v<Integer>) overflow = a == std::numeric_limits<Integer>::min() && b == -1;
      if (!overflow) result = operation == Arithmetic::kDivide ? a / b : a % b;
  }
  return overflow ? Value::Failed(overflows) : Value(result);
}

Value CalculateDoubles(Arithmetic operation, double a, double b) {
  switch (operation) {
    case Arithmetic::kAdd:
      return Value(a + b);
    case Arithmetic::kSubtract:
      return Value(a - b);
    case Arithmetic::kMultiply:
      return Value(a * b);
    case Arithmetic::kDivide:
      return Value(a / b);
    case Arithmetic::kModulo:
      break;
  }
  return Value::NoOverload();
}

Value Concatenate(const Value& a, const Value& b, Budget& budget) {
  if (a.kind() == Kind::kString) {
    if (!budget.Spend(TextCost(a.text()) + TextCost(b.text()))) return SpentOut();
    return Value::OwnedText(std::string(a.text()) + std::string(b.text()));
  }
  if (const auto* x = a.As<Value::Bytes>()) {
    if (!budget.Spend((x->data->size() + b.As<Value::Bytes>()->data->size()) / 10)) return SpentOut();
    return Value(Value::Bytes{std::make_shared<const std::string>(*x->data + *b.As<Value::Bytes>()->data)});
  }
  if (!budget.Spend(a.size() + b.size())) return SpentOut();
  auto all = std::make_shared<std::vector<Value>>();
  all->reserve(a.size() + b.size());
  for (size_t i = 0; i < a.size(); ++i) all->push_back(a.Item(i));
  for (size_t i = 0; i < b.size(); ++i) all->push_back(b.Item(i));
  return Value(Value::List(std::move(all)));
}

}  // namespace

const Function* FindFunction(std::string_view name, bool member, size_t arguments) {
  for (const Function& each : kFunctions) {
    if (each.name == name && each.member == member && arguments >= each.least && arguments <= each.most) return &each;
  }
  return nullptr;
}

Value Calculate(Arithmetic operation, const Value& a, const Value& b, Budget& budget) {
  if (a.is_error()) return a;
  if (b.is_error()) return b;
  const bool sum = operation == Arithmetic::kAdd;
  const bool difference = operation == Arithmetic::kSubtract;
  const auto* at = a.As<Value::Timestamp>();
  const auto* bt = b.As<Value::Timestamp>();
  const auto* ad = a.As<Value::Duration>();
  const auto* bd = b.As<Value::Duration>();
  const auto exact = [&](int64_t x, int64_t y, bool time) {
    const Value result = Calculate<int64_t>(operation, x, y, kIntOverflow);
    if (result.is_error()) return Value::Failed(time ? "timestamp overflow" : "duration overflow");
    return time ? Value(Value::Timestamp{*result.As<int64_t>()}) : Value(Value::Duration{*result.As<int64_t>()});
  };
  if (at != nullptr && bd != nullptr && (sum || difference)) return exact(at->nanoseconds, bd->nanoseconds, true);
  if (ad != nullptr && bt != nullptr && sum) return exact(ad->nanoseconds, bt->nanoseconds, true);
  if (at != nullptr && bt != nullptr && difference) return exact(at->nanoseconds, bt->nanoseconds, false);
  if (ad != nullptr && bd != nullptr && (sum || difference)) return exact(ad->nanoseconds, bd->nanoseconds, false);
  if (a.kind() != b.kind()) return Value::NoOverload();
  if (const auto* x = a.As<int64_t>()) return Calculate<int64_t>(operation, *x, *b.As<int64_t>(), kIntOverflow);
  if (const auto* x = a.As<uint64_t>())
    return Calculate<uint64_t>(operation, *x, *b.As<uint64_t>(), "unsigned integer overflow");
  if (const auto* x = a.As<double>()) return CalculateDoubles(operation, *x, *b.As<double>());
  const bool joins = a.kind() == Kind::kString || a.kind() == Kind::kBytes || a.is_list();
  return sum && joins ? Concatenate(a, b, budget) : Value::NoOverload();
}

Value Negate(const Value& value) {
  if (const auto* i = value.As<int64_t>()) return Calculate<int64_t>(Arithmetic::kSubtract, 0, *i, kIntOverflow);
  if (const auto* d = value.As<double>()) return Value(-*d);
  return value.is_error() ? value : Value::NoOverload();
}

Value SpentOut() { return Value::Failed("operation cancelled: actual cost limit exceeded", true); }

}  // namespace medley::cel
