#include "cli/run/mix_goal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"

namespace medley::cli {
namespace {

using base::StatusIs;
using testing::HasSubstr;

// What a goal costs: the mix of pools a and b, pool a alone; 0: not possible.
struct Costs {
  double mix = 0;
  double single = 0;
};

model::PlanResult Answer(const Costs& costs) {
  model::PlanResult result;
  const double best = costs.mix > 0 && (costs.single <= 0 || costs.mix < costs.single) ? costs.mix : costs.single;
  if (best > 0) {
    result.plan.emplace();
    result.plan->cost_usd = best;
    result.plan->stages.resize(2);
    result.plan->stages[0].resource_type = "a";
    result.plan->stages[1].resource_type = best == costs.single ? "a" : "b";
  }
  result.alternatives.resize(2);
  result.alternatives[0].label = "a only";
  if (costs.single > 0) {
    result.alternatives[0].plan.emplace();
    result.alternatives[0].plan->cost_usd = costs.single;
  }
  result.alternatives[1].label = "b only";
  return result;
}

TEST(MixGoalTest, IsTheMiddleOfTheGoalsForWhichTheMixIsMuchCheaper) {
  // Up to 400 samples/s one unit of a is enough; up to 800 a mix is much cheaper than two units of a, then a little.
  const auto goal = FindMixGoal(1000, 20, [](double rate) {
    return Answer(rate <= 400 ? Costs{1.5, 1} : rate <= 800 ? Costs{1.3, 2} : Costs{1.9, 2});
  });
  ASSERT_THAT(goal, base::IsOk());
  EXPECT_GE(goal->samples_per_second, 580);
  EXPECT_LE(goal->samples_per_second, 640);
  EXPECT_EQ(goal->why, "a mix of pools should be 35 % cheaper there than the cheapest single pool");
}

TEST(MixGoalTest, APoolToCompareWithIsPreferred) {
  const auto plan = [](double rate) {
    return Answer(rate <= 400 ? Costs{1.5, 1} : rate <= 500 ? Costs{1.3, 2} : Costs{1.3, 0});
  };
  const auto goal = FindMixGoal(1000, 20, plan);
  ASSERT_THAT(goal, base::IsOk());
  EXPECT_LE(goal->samples_per_second, 500);
  const auto other = FindMixGoal(1000, 50, plan);
  ASSERT_THAT(other, base::IsOk());
  EXPECT_GT(other->samples_per_second, 500);
  EXPECT_EQ(other->why, "no single pool reaches that");
}

TEST(MixGoalTest, AMachineThatCannotShowItSaysWhatComesClosest) {
  EXPECT_THAT(FindMixGoal(1000, 20,
                          [](double rate) {
                            return Answer(rate <= 500 ? Costs{1.5, 1} : Costs{1.8, 2});
                          }),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("20 % cheaper than a single pool on this machine: at best 10 %, at 520")));
  EXPECT_THAT(FindMixGoal(1000, 20,
                          [](double) {
                            return Answer({2, 1});
                          }),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no goal makes a mix of pools cheaper")));
  EXPECT_THAT(FindMixGoal(1000, 20, [](double) { return Answer({}); }),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(
      FindMixGoal(1000, 20, [](double) -> absl::StatusOr<model::PlanResult> { return base::Internal("broken"); }),
      StatusIs(absl::StatusCode::kInternal, "broken"));
}

}  // namespace
}  // namespace medley::cli
