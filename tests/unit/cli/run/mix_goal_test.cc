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

// After the prices change, a job must have a plan to move to: the example shows a move.
TEST(MixGoalTest, GoalsThatLeaveAPlanToMoveToArePreferred) {
  const auto now = [](double rate) { return Answer(rate <= 800 ? Costs{1.0, 2} : Costs{1.0, 0}); };
  // What the mix costs at the later prices is 3. Between 520 and 600 samples/s and above 880 something else costs half.
  const auto later = [&](double cost_of_the_mix) {
    return LaterPrices{.plan =
                           [](double rate) {
                             const bool cheaper = (rate >= 520 && rate <= 600) || rate >= 880;
                             return Answer(cheaper ? Costs{0, 1.5} : Costs{0, 2.9});
                           },
                       .cost_usd = [=](const model::ProvisionedPlan& plan) { return plan.cost_usd * cost_of_the_mix; }};
  };
  auto goal = FindMixGoal(1000, 20, now, later(3));
  ASSERT_THAT(goal, base::IsOk());
  EXPECT_GE(goal->samples_per_second, 520);
  EXPECT_LE(goal->samples_per_second, 600);
  // Without a single pool that reaches the goal there is still something to show, where the job can move.
  goal = FindMixGoal(
      1000, 20,
      [](double rate) {
        return Answer({1.0, rate <= 500 ? 2.0 : 0.0});
      },
      later(3));
  ASSERT_THAT(goal, base::IsOk());
  EXPECT_GE(goal->samples_per_second, 520);
  EXPECT_EQ(goal->why, "no single pool reaches that");
  // No goal leaves a better plan: as without later prices.
  goal = FindMixGoal(1000, 20, now, later(1));
  ASSERT_THAT(goal, base::IsOk());
  EXPECT_EQ(goal->samples_per_second, FindMixGoal(1000, 20, now)->samples_per_second);
  EXPECT_FALSE(goal->moves);
  auto broken = later(3);
  broken.plan = [](double) -> absl::StatusOr<model::PlanResult> { return base::Internal("broken"); };
  EXPECT_THAT(FindMixGoal(1000, 20, now, broken), StatusIs(absl::StatusCode::kInternal, "broken"));
}

// On a slow machine the mix saved 18 % where the job could move, and more where no single pool is fast enough: the demo
// chose that, never moved, and failed.
TEST(MixGoalTest, AMoveIsPreferredToALargerSaving) {
  const auto now = [](double rate) {
    return Answer(rate <= 500   ? Costs{0, 1.0}
                  : rate <= 600 ? Costs{0.95, 1.0}
                  : rate <= 800 ? Costs{0.82, 1.0}
                                : Costs{1.0, rate <= 950 ? 1.0 : 0.0});
  };
  const auto later = [](double from, double to) {
    return LaterPrices{.plan =
                           [=](double rate) {
                             return Answer({0, rate > from && rate <= to ? 1.5 : 3.0});
                           },
                       .cost_usd = [](const model::ProvisionedPlan&) { return 3.0; }};
  };
  auto goal = FindMixGoal(1000, 20, now, later(300, 900));
  ASSERT_THAT(goal, base::IsOk());
  EXPECT_TRUE(goal->moves);
  EXPECT_GT(goal->samples_per_second, 660);
  EXPECT_LT(goal->samples_per_second, 740);
  EXPECT_EQ(goal->why,
            "a mix of pools should be 18 % cheaper there than the cheapest single pool, and no goal of which "
            "a job moves later saves 20 %");
  goal = FindMixGoal(1000, 20, now, later(300, 500));
  ASSERT_THAT(goal, base::IsOk());
  EXPECT_TRUE(goal->moves);
  EXPECT_LE(goal->samples_per_second, 500);
  EXPECT_EQ(goal->why, "a job moves from there when the prices change, though no mix is cheaper");
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
