#include "worker/cut/expression.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace medley::worker::cut {
namespace {

constexpr size_t kMostCharacters = 4096;
constexpr int kMostLevels = 64;
constexpr int64_t kMostPower = 64;

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

}  // namespace

// Recursive descent: sum of products of signed powers.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) { out_.text_ = std::string(text); }

  absl::StatusOr<Expression> Parse() {
    if (out_.text_.size() > kMostCharacters) {
      return base::InvalidArgument("a size has an expression of {} characters; at most {} are read", out_.text_.size(),
                                   kMostCharacters);
    }
    MEDLEY_RETURN_IF_ERROR(Sum());
    if (at_ != out_.text_.size()) return Unexpected();
    return std::move(out_);
  }

 private:
  using Code = Expression::Code;

  absl::Status Sum() {
    if (++level_ > kMostLevels) return base::InvalidArgument("the size '{}' is nested too deeply", out_.text_);
    MEDLEY_RETURN_IF_ERROR(Product());
    while (true) {
      if (Take("+")) {
        MEDLEY_RETURN_IF_ERROR(Product());
        Emit(Code::kAdd);
      } else if (Take("-")) {
        MEDLEY_RETURN_IF_ERROR(Product());
        Emit(Code::kSubtract);
      } else {
        --level_;
        return absl::OkStatus();
      }
    }
  }

  absl::Status Product() {
    MEDLEY_RETURN_IF_ERROR(Signed());
    while (true) {
      const bool power = Rest().starts_with("**");
      Code code = Code::kMultiply;
      if (Take("//")) {
        code = Code::kFloorDivide;
      } else if (Take("/")) {
        code = Code::kDivide;
      } else if (Take("%")) {
        code = Code::kModulo;
      } else if (power || !Take("*")) {
        return absl::OkStatus();
      }
      MEDLEY_RETURN_IF_ERROR(Signed());
      Emit(code);
    }
  }

  absl::Status Signed() {
    bool negative = false;
    while (Take("-")) negative = !negative;
    MEDLEY_RETURN_IF_ERROR(Atom());
    if (Take("**")) {
      MEDLEY_RETURN_IF_ERROR(Atom());
      Emit(Code::kPower);
    }
    if (negative) Emit(Code::kNegate);
    return absl::OkStatus();
  }

  absl::Status Atom() {
    if (Take("(")) {
      MEDLEY_RETURN_IF_ERROR(Sum());
      return Take(")") ? absl::OkStatus() : Unexpected();
    }
    const std::string word = Word();
    if (word.empty()) return Unexpected();
    if (absl::ascii_isdigit(static_cast<unsigned char>(word.front()))) {
      int64_t number = 0;
      if (!absl::SimpleAtoi(word, &number))
        return base::InvalidArgument("the size '{}' has no number '{}'", out_.text_, word);
      out_.instructions_.push_back({Code::kNumber, number});
      return absl::OkStatus();
    }
    if (Take("(")) return Call(word);
    PushSymbol(word);
    return absl::OkStatus();
  }

  absl::Status Call(std::string name) {
    name = name.substr(name.rfind('.') + 1);  // torch.utils._sympy.functions.FloorDiv
    if (name == "Symbol") return SymbolCall();
    if (name == "Integer") {
      MEDLEY_RETURN_IF_ERROR(Sum());
      return Take(")") ? absl::OkStatus() : Unexpected();
    }
    static const std::map<std::string, Code> kFunctions = {
        {"Add", Code::kAdd},          {"Mul", Code::kMultiply},
        {"Pow", Code::kPower},        {"Max", Code::kMax},
        {"Min", Code::kMin},          {"Mod", Code::kModulo},
        {"PythonMod", Code::kModulo}, {"FloorDiv", Code::kFloorDivide},
        {"CleanDiv", Code::kDivide},  {"CeilDiv", Code::kCeilDivide}};
    const auto found = kFunctions.find(name);
    if (found == kFunctions.end()) {
      return base::InvalidArgument("the size '{}' calls '{}', which is not known", out_.text_, name);
    }
    const Code code = found->second;
    const bool many = code == Code::kAdd || code == Code::kMultiply || code == Code::kMax || code == Code::kMin;
    int arguments = 0;
    int64_t divisor = 1;  // of Mul(Rational(1, 2), ...): the last step
    do {
      MEDLEY_ASSIGN_OR_RETURN(const int64_t below, RationalOrSum(code == Code::kMultiply));
      if (__builtin_mul_overflow(divisor, below, &divisor)) return Unexpected();
      if (++arguments > 1) Emit(code);
    } while (Take(","));
    if (!many && arguments != 2) {
      return base::InvalidArgument("the size '{}': {} takes 2 numbers, got {}", out_.text_, name, arguments);
    }
    if (divisor != 1) {
      out_.instructions_.push_back({Code::kNumber, divisor});
      Emit(Code::kDivide);
    }
    return Take(")") ? absl::OkStatus() : Unexpected();
  }

  // Reads the numerator of a Rational and returns its denominator; of anything else, 1.
  absl::StatusOr<int64_t> RationalOrSum(bool rational) {
    if (!rational || !Take("Rational(")) {
      MEDLEY_RETURN_IF_ERROR(Sum());
      return 1;
    }
    MEDLEY_RETURN_IF_ERROR(Signed());
    int64_t below = 0;
    if (!Take(",") || !absl::SimpleAtoi(Word(), &below) || below <= 0 || !Take(")")) return Unexpected();
    return below;
  }

  // Symbol('s0', positive=True, integer=True), after the parenthesis.
  absl::Status SymbolCall() {
    if (!Take("'")) return Unexpected();
    const std::string name = Word();
    if (name.empty() || !Take("'")) return Unexpected();
    while (Take(",")) {
      if (Word().empty() || !Take("=") || Word().empty()) return Unexpected();
    }
    PushSymbol(name);
    return Take(")") ? absl::OkStatus() : Unexpected();
  }

  void PushSymbol(const std::string& name) {
    const auto known = std::ranges::find(out_.symbols_, name);
    out_.instructions_.push_back({Code::kSymbol, known - out_.symbols_.begin()});
    if (known == out_.symbols_.end()) out_.symbols_.push_back(name);
  }

  void Emit(Code code) { out_.instructions_.push_back({code, 0}); }
  std::string_view Rest() {
    while (at_ < out_.text_.size() && out_.text_[at_] == ' ') ++at_;
    return std::string_view(out_.text_).substr(at_);
  }
  bool Take(std::string_view sign) {
    if (!Rest().starts_with(sign)) return false;
    at_ += sign.size();
    Rest();
    return true;
  }
  std::string Word() {
    const std::string_view rest = Rest();
    size_t length = 0;
    while (length < rest.size() && (absl::ascii_isalnum(static_cast<unsigned char>(rest[length])) ||
                                    rest[length] == '_' || rest[length] == '.')) {
      ++length;
    }
    at_ += length;
    std::string word(rest.substr(0, length));
    Rest();
    return word;
  }
  absl::Status Unexpected() const {
    return base::InvalidArgument("the size '{}' cannot be read from character {} on", out_.text_, at_ + 1);
  }

  Expression out_;
  size_t at_ = 0;
  int level_ = 0;
};

absl::StatusOr<Expression> Expression::Parse(std::string_view text) { return ExpressionParser(text).Parse(); }

absl::StatusOr<int64_t> Expression::Compute(Code code, int64_t a, int64_t b) {
  int64_t out = 0;
  const auto checked = [&](bool overflow) -> absl::StatusOr<int64_t> {
    if (overflow) return base::InvalidArgument("it is too large");
    return out;
  };
  const bool divides =
      code == Code::kDivide || code == Code::kFloorDivide || code == Code::kCeilDivide || code == Code::kModulo;
  if (divides && (b == 0 || b == -1)) {
    if (b == 0) return base::InvalidArgument("it divides by zero");
    return code == Code::kModulo ? 0 : checked(__builtin_sub_overflow(int64_t{0}, a, &out));
  }
  switch (code) {
    case Code::kAdd:
      return checked(__builtin_add_overflow(a, b, &out));
    case Code::kSubtract:
      return checked(__builtin_sub_overflow(a, b, &out));
    case Code::kMultiply:
      return checked(__builtin_mul_overflow(a, b, &out));
    case Code::kDivide:
      if (a % b != 0) return base::InvalidArgument("{} / {} leaves a remainder", a, b);
      return a / b;
    case Code::kFloorDivide:
      return FloorDivide(a, b);
    case Code::kCeilDivide:
      return FloorDivide(a, b) + (a % b != 0 ? 1 : 0);
    case Code::kModulo:
      return a - b * FloorDivide(a, b);
    case Code::kPower: {
      if (b < 0 || b > kMostPower) return base::InvalidArgument("its power {} is not between 0 and {}", b, kMostPower);
      out = 1;
      for (int64_t i = 0; i < b; ++i) {
        if (__builtin_mul_overflow(out, a, &out)) return base::InvalidArgument("it is too large");
      }
      return out;
    }
    case Code::kMax:
      return std::max(a, b);
    case Code::kMin:
      return std::min(a, b);
    default:
      return base::Internal("not an operation");
  }
}

absl::StatusOr<int64_t> Expression::At(const Symbols& symbols) const {
  std::vector<int64_t> stack;
  for (const Instruction& instruction : instructions_) {
    if (instruction.code == Code::kNumber) {
      stack.push_back(instruction.value);
    } else if (instruction.code == Code::kSymbol) {
      const std::string& name = symbols_[static_cast<size_t>(instruction.value)];
      const auto found = symbols.find(name);
      if (found == symbols.end()) return base::InvalidArgument("the size '{}': nothing tells what {} is", text_, name);
      stack.push_back(found->second);
    } else {
      const int64_t b = stack.back();
      int64_t a = 0;
      if (instruction.code != Code::kNegate) {
        stack.pop_back();
        a = stack.back();
      }
      const auto value = Compute(instruction.code == Code::kNegate ? Code::kSubtract : instruction.code, a, b);
      if (!value.ok()) return base::InvalidArgument("the size '{}': {}", text_, base::Message(value.status()));
      stack.back() = *value;
    }
  }
  return stack.back();
}

}  // namespace medley::worker::cut
