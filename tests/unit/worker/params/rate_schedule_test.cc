#include "worker/params/rate_schedule.h"

#include <gtest/gtest.h>

#include <vector>

#include "worker/params/optimizer.h"

namespace medley::worker {
namespace {

std::vector<double> Factors(const RateSchedule& schedule, int64_t steps) {
  std::vector<double> factors;
  for (int64_t step = 1; step <= steps; ++step) factors.push_back(RateFactor(schedule, step));
  return factors;
}

void ExpectNear(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12) << "step " << i + 1;
}

TEST(RateScheduleTest, ConstantIsTheDefault) { ExpectNear(Factors({}, 3), {1, 1, 1}); }

// torch.optim.lr_scheduler.StepLR(step_size=2, gamma=0.1)
TEST(RateScheduleTest, Step) {
  const RateSchedule schedule{.curve = RateCurve::kStep, .every_steps = 2, .factor = 0.1};
  ExpectNear(Factors(schedule, 6), {1, 1, 0.1, 0.1, 0.01, 0.01});
}

// torch.optim.lr_scheduler.CosineAnnealingLR(T_max=4, eta_min=0.2), which then stays at its lowest value here
TEST(RateScheduleTest, Cosine) {
  const RateSchedule schedule{.curve = RateCurve::kCosine, .steps = 4, .final_factor = 0.2};
  ExpectNear(Factors(schedule, 7), {1, 0.88284271247461900, 0.6, 0.31715728752538100, 0.2, 0.2, 0.2});
}

TEST(RateScheduleTest, TheWarmUpComesFirst) {
  const RateSchedule step{.curve = RateCurve::kStep, .warmup_steps = 4, .every_steps = 2, .factor = 0.5};
  ExpectNear(Factors(step, 9), {0.25, 0.5, 0.75, 1, 1, 1, 0.5, 0.5, 0.25});
  ExpectNear(Factors({.warmup_steps = 2}, 4), {0.5, 1, 1, 1});
}

TEST(RateScheduleTest, FarSteps) {
  EXPECT_EQ(RateFactor({.curve = RateCurve::kStep, .every_steps = 1, .factor = 0.5}, int64_t{1} << 40), 0);
  EXPECT_EQ(RateFactor({.curve = RateCurve::kStep, .every_steps = 1, .factor = 1}, int64_t{1} << 40), 1);
  EXPECT_NEAR(RateFactor({.curve = RateCurve::kCosine, .steps = 10}, int64_t{1} << 40), 0, 1e-12);
}

TEST(RateScheduleTest, AnOptimizerHasTheRateOfItsStep) {
  Optimizer optimizer{.learning_rate = 0.5F};
  optimizer.schedule = {.curve = RateCurve::kStep, .every_steps = 3, .factor = 0.5};
  EXPECT_EQ(optimizer.AtStep(3).learning_rate, 0.5F);
  EXPECT_EQ(optimizer.AtStep(4).learning_rate, 0.25F);
  EXPECT_EQ(optimizer.AtStep(4).kind, optimizer.kind);
}

}  // namespace
}  // namespace medley::worker
