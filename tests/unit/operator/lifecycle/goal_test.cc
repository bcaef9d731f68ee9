#include "operator/lifecycle/goal.h"

#include <gtest/gtest.h>

namespace medley::ops::lifecycle {
namespace {

constexpr Measured kMeasured{.throughput = 100,
                             .usd_per_hour = 2,
                             .remaining_samples = 360000,
                             .elapsed_seconds = 400,
                             .spent_usd = 1};  // an hour is left

TEST(GoalTest, EachGoalCounts) {
  EXPECT_TRUE(ReachesGoal({}, kMeasured));
  EXPECT_TRUE(ReachesGoal({100, 4000, 3, 2}, kMeasured));
  EXPECT_FALSE(ReachesGoal({.min_throughput = 101}, kMeasured));
  EXPECT_FALSE(ReachesGoal({.deadline_seconds = 3999}, kMeasured));
  EXPECT_FALSE(ReachesGoal({.budget_usd = 2.99}, kMeasured));
  EXPECT_FALSE(ReachesGoal({.max_usd_per_hour = 1.99}, kMeasured));
  Measured nothing = kMeasured;
  nothing.throughput = 0;
  EXPECT_FALSE(ReachesGoal({}, nothing));
}

TEST(GoalTest, UnitsAreCountedOverAllStagesAndBoundedInEach) {
  model::ExecutionPlan plan;
  plan.stages.resize(2);
  plan.stages[0].groups = {{"a", 2, 1}};
  plan.stages[1].groups = {{"b", 1, 1}};
  EXPECT_TRUE(HasWantedUnits({.min_units = 1, .max_units = 3}, plan));
  EXPECT_FALSE(HasWantedUnits({.min_units = 2, .max_units = 3}, plan));
  EXPECT_FALSE(HasWantedUnits({.min_units = 1, .max_units = 2}, plan));
}

}  // namespace
}  // namespace medley::ops::lifecycle
