#include "worker/cut/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/status.h"

namespace medley::worker::cut {
namespace {

using ::testing::HasSubstr;

int64_t At(const std::string& text, int64_t batch) {
  const auto expression = Expression::Parse(text);
  EXPECT_TRUE(expression.ok()) << expression.status();
  const auto value = expression->At({{"s0", batch}});
  EXPECT_TRUE(value.ok()) << value.status();
  return value.value_or(-999);
}

TEST(ExpressionTest, EvaluatesWhatPyTorchWrites) {
  EXPECT_EQ(At("s0", 5), 5);
  EXPECT_EQ(At("4*s0 + 1", 5), 21);
  EXPECT_EQ(At("2 - 3 - 4", 0), -5) << "from left to right";
  EXPECT_EQ(At("-s0**2", 3), -9) << "the power first";
  EXPECT_EQ(At("(s0//2)*2", 7), 6);
  EXPECT_EQ(At("-7//2", 0), -4) << "towards minus infinity, as in Python";
  EXPECT_EQ(At("Mod(s0 - 8, 3)", 1), 2);
  EXPECT_EQ(At("Max(1, s0, 3)", 2), 3);
  EXPECT_EQ(At("Min(4, s0)", 2), 2);
  EXPECT_EQ(At("Symbol('s0', positive=True, integer=True)", 6), 6);
  EXPECT_EQ(At("Mul(Integer(4), Symbol('s0', positive=True, integer=True))", 6), 24);
  EXPECT_EQ(At("Add(Mul(Integer(-1), Symbol('s0', integer=True)), Integer(10))", 6), 4);
  EXPECT_EQ(At("Mul(Rational(3, 2), Symbol('s0', integer=True))", 6), 9);
  EXPECT_EQ(At("torch.utils._sympy.functions.FloorDiv(Symbol('s0', integer=True), Integer(4))", 9), 2);
  EXPECT_EQ(At("Pow(Symbol('s0', integer=True), Integer(3))", 2), 8);
}

TEST(ExpressionTest, KnowsItsSymbols) {
  EXPECT_THAT(Expression::Parse("s0*s1 + s0")->symbols(), ::testing::ElementsAre("s0", "s1"));
}

TEST(ExpressionTest, RefusesOtherText) {
  for (const std::string text :
       {"", "s0 +", "(s0", "s0)", "2 2", "sin(s0)", "Mod(s0)", "Symbol(s0)", "Symbol('s0'", "1.5",
        "99999999999999999999", "Rational(1, 2)", "__import__('os')", "Mul(Rational(1, 0), s0)"}) {
    EXPECT_FALSE(Expression::Parse(text).ok()) << text;
  }
  EXPECT_THAT(base::Message(Expression::Parse(std::string(200, '(')).status()), HasSubstr("nested too deeply"));
  EXPECT_THAT(base::Message(Expression::Parse(std::string(5000, '1')).status()), HasSubstr("5000 characters"));
}

TEST(ExpressionTest, RefusesWhatHasNoValue) {
  const auto fails = [](const std::string& text, int64_t batch) {
    return base::Message(Expression::Parse(text)->At({{"s0", batch}}).status());
  };
  EXPECT_THAT(fails("s1", 1), HasSubstr("nothing tells what s1 is"));
  EXPECT_THAT(fails("1//(s0 - 1)", 1), HasSubstr("divides by zero"));
  EXPECT_THAT(fails("s0/2", 3), HasSubstr("leaves a remainder"));
  EXPECT_THAT(fails("s0*s0", int64_t{1} << 40), HasSubstr("too large"));
  EXPECT_THAT(fails("9223372036854775807 + s0", 1), HasSubstr("too large"));
  EXPECT_THAT(fails("2**(s0 - 9)", 1), HasSubstr("power"));
}

}  // namespace
}  // namespace medley::worker::cut
