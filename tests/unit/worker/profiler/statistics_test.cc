#include "worker/profiler/statistics.h"

#include <gtest/gtest.h>

namespace medley::worker {
namespace {

TEST(StatisticsTest, MedianIgnoresOneSlowRun) {
  EXPECT_EQ(Median({3, 1, 100}), 3);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
  EXPECT_LT(Spread({1.0, 1.1, 0.9, 1.05, 50}), 0.2);
  EXPECT_EQ(Spread({2, 2, 2}), 0);
}

TEST(StatisticsTest, ParallelFractionInvertsItsModel) {
  const std::vector<double> units = {1, 2, 4};
  for (const double a : {0.0, 0.3, 0.95, 1.0}) {
    std::vector<double> costs;
    for (const double k : units) costs.push_back(0.02 * (1 - a + a / k));
    EXPECT_NEAR(ParallelFraction(units, costs), a, 1e-12);
  }
}

TEST(StatisticsTest, ParallelFractionStaysInItsRange) {
  const std::vector<double> units = {1, 2};
  EXPECT_EQ(ParallelFraction(units, std::vector<double>{1, 2}), 0);
  EXPECT_EQ(ParallelFraction(units, std::vector<double>{1, 0.1}), 1);
  EXPECT_EQ(ParallelFraction(units, std::vector<double>{0, 0}), 0);
}

// A limit of half a core: blocks that end in a pause are slower, others are not.
TEST(StatisticsTest, ALimitHoldsUpOperationsAsAWhole) {
  EXPECT_TRUE(HeldUp(std::vector<RunTimes>{{2.6, 1, 1}, {1, 1, 1}}));
  EXPECT_FALSE(HeldUp(std::vector<RunTimes>{{1.01, 1, 1}, {1, 1, 1}}));
  EXPECT_FALSE(HeldUp(std::vector<RunTimes>{}));
}

TEST(StatisticsTest, LongRunSecondsFollowProcessorTime) {
  EXPECT_EQ(LongRunSeconds({2.6, 1, 1}, 2), 2);
  EXPECT_EQ(LongRunSeconds({1, 1, 4}, 0.5), 2) << "four threads, a limit of two cores";
  EXPECT_EQ(LongRunSeconds({1, 1, 1}, 0.5), 1) << "one thread cannot use a limit of two cores";
}

}  // namespace
}  // namespace medley::worker
