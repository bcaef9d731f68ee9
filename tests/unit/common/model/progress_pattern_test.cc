#include "common/model/progress_pattern.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"

namespace medley::model {
namespace {

using base::StatusIs;
using testing::HasSubstr;

std::optional<StepReport> Read(const std::string& expression, std::string_view line) {
  const auto pattern = ProgressPattern::Make(expression);
  EXPECT_THAT(pattern, base::IsOk()) << expression;
  return pattern.ok() ? pattern->Read(line) : std::nullopt;
}

TEST(ProgressPatternTest, FindsTheStepAndItsLossAnywhereInALine) {
  constexpr char kExpression[] = R"(step (?P<step>\d+).*loss (?P<loss>[-\d.e]+))";
  EXPECT_EQ(Read(kExpression, "12:00 INFO step 12 of 100, loss 0.25 (lr 0.1)"), (StepReport{12, 0.25}));
  EXPECT_EQ(Read(kExpression, "step 7 loss 1e-3"), (StepReport{7, 1e-3}));
  EXPECT_EQ(Read(kExpression, "epoch 3"), std::nullopt);
  EXPECT_EQ(Read(kExpression, ""), std::nullopt);
}

TEST(ProgressPatternTest, ALossIsNotNeeded) {
  EXPECT_EQ(Read(R"((?P<step>\d+)/100)", "7/100"), (StepReport{7, std::nullopt}));
  EXPECT_EQ(Read(R"((?P<step>\d+)( loss (?P<loss>\S+))?)", "7"), (StepReport{7, std::nullopt}));
  EXPECT_EQ(Read(R"((?P<step>\d+) loss (?P<loss>\S+))", "7 loss nan"), (StepReport{7, std::nullopt}));
}

TEST(ProgressPatternTest, InvalidNumbersAreIgnored) {
  EXPECT_EQ(Read(R"(step (?P<step>\S+))", "step x"), std::nullopt);
  EXPECT_EQ(Read(R"(step (?P<step>\S+))", "step 0"), std::nullopt);
  EXPECT_EQ(Read(R"(step (?P<step>\S+))", "step -1"), std::nullopt);
  EXPECT_EQ(Read(R"(step (?P<step>\S+))", "step 99999999999999999999"), std::nullopt);
  EXPECT_EQ(Read(R"(step (?P<step>\d*))", "step "), std::nullopt);
}

TEST(ProgressPatternTest, ExpressionsThatFindNoStepAreRefused) {
  EXPECT_THAT(ProgressPattern::Make("step (").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'step (' is no regular expression")));
  EXPECT_THAT(ProgressPattern::Make(R"(step (\d+))").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no group (?P<step>...)")));
}

}  // namespace
}  // namespace medley::model
