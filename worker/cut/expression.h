// Sizes that depend on the batch, as PyTorch writes them into exported programs: SymPy expressions over integers, such
// as "4*s0", "s0//2 + 1", "Max(1, s0)" and "Mul(Integer(4), Symbol('s0', integer=True))".
//
// Expressions come from files that nobody trusts: they are parsed into a list of instructions for a stack of bounded
// depth, and evaluated with checks for overflow. Immutable; thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace medley::worker::cut {

using Symbols = std::map<std::string, int64_t, std::less<>>;

class Expression {
 public:
  // Knows numbers, symbols, + - * / // % ** and parentheses, and the functions Add, Mul (also with Rational), Pow, Max,
  // Min, Mod, PythonMod, FloorDiv, CleanDiv, CeilDiv, Integer and Symbol. Errors: InvalidArgument with the place for
  // other text, or more than 4096 characters or 64 levels.
  static absl::StatusOr<Expression> Parse(std::string_view text);

  // Errors: InvalidArgument for a symbol without a value, a division by zero or that leaves a remainder (/), and
  // overflow.
  absl::StatusOr<int64_t> At(const Symbols& symbols) const;

  // The names of its symbols, each once, in order of appearance.
  const std::vector<std::string>& symbols() const { return symbols_; }

 private:
  friend class ExpressionParser;
  enum class Code : uint8_t {
    kNumber,
    kSymbol,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kFloorDivide,
    kCeilDivide,
    kModulo,
    kPower,
    kNegate,
    kMax,
    kMin
  };
  struct Instruction {
    Code code = Code::kNumber;
    int64_t value = 0;  // the number, or the index of the symbol
  };
  static absl::StatusOr<int64_t> Compute(Code code, int64_t a, int64_t b);

  std::string text_;
  std::vector<Instruction> instructions_;  // in the order of evaluation
  std::vector<std::string> symbols_;
};

}  // namespace medley::worker::cut
