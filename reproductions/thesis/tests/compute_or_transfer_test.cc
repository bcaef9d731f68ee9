// The numbers of the thesis' own examples, and the right forms against direct computation.
#include "reproductions/thesis/compute_or_transfer.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "scheduler-service/devices/shares.h"

namespace medley::reproductions::thesis {
namespace {

// Section 3.2.1: with one slow node the transfer must cost less than 1, with two less than 2.
TEST(ComputeOrTransferTest, TheExamplesOfThreeNodes) {
  EXPECT_DOUBLE_EQ(SharedByPower(1, 10, 0), 10.0 / 11);
  EXPECT_DOUBLE_EQ(SharedByPower(1, 10, 1), 1);  // the limit for node B
  EXPECT_DOUBLE_EQ(SharedByPower(2, 10, 2), 1);  // and for B and C
  // With shares by time a slow node always helps a little, because transfers cost per byte only.
  for (const double transfer : {0.0, 1.0, 2.0, 100.0}) {
    EXPECT_LT(SharedByTime(1, 10, transfer), 1);
    EXPECT_LE(SharedByTime(1, 10, transfer), SharedByPower(1, 10, transfer) + 1e-12);
  }
}

// Section 3.2.2: with two slow nodes of cost 10, operation b must be 4 + X / 2 times as expensive.
TEST(ComputeOrTransferTest, TheExampleOfTwoOperations) {
  for (const double x : {0.0, 1.0, 6.0}) {
    const double least = LeastRatio(2, 10, x);
    EXPECT_DOUBLE_EQ(least, 4 + x / 2);
    EXPECT_LT(FirstOnSlow(least + 0.01, 2, 10, x), BothOnFast(least + 0.01));
    EXPECT_GE(FirstOnSlow(least - 0.01, 2, 10, x), BothOnFast(least - 0.01));
  }
}

TEST(ComputeOrTransferTest, WholeJobsNeedNoRoundTooMany) {
  EXPECT_EQ(OneGroup({4, 3}, 8), 6);
  EXPECT_EQ(OneGroup({4, 3}, 9), 9);
  EXPECT_EQ(PrintedOneGroup({4, 3}, 8), 9);
}

// As printed, a second group can only make things slower than its own nodes alone would explain: times are added.
TEST(ComputeOrTransferTest, GroupsThatWorkAtTheSameTime) {
  EXPECT_DOUBLE_EQ(PrintedGroups({4, 4}, 10, 0, 44), (10 + 100) * 44 / 44.0);
  EXPECT_DOUBLE_EQ(Groups({{4, 10}, {4, 100}}, 44), 100);  // 40 jobs here and 4 there, at the same time
  EXPECT_DOUBLE_EQ(Groups({{4, 10}}, 44), 110);            // so the second group helps
  EXPECT_GE(PrintedGroups({4, 4}, 10, 0, 44), PrintedGroups({4}, 10, 0, 44));  // printed: it does not
}

// The right form is what shares at which all end together give.
TEST(ComputeOrTransferTest, GroupsEndTogether) {
  base::Rng rng(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<NodeGroup> groups(1 + rng.Below(5));
    std::vector<sched::DeviceProblem::Work> work;
    const double jobs = rng.Uniform(1, 1000);
    for (NodeGroup& group : groups) {
      group = {1 + static_cast<int>(rng.Below(6)), rng.Uniform(0.1, 50)};
      for (int i = 0; i < group.nodes; ++i) work.push_back({0, jobs * group.seconds});
    }
    EXPECT_NEAR(Groups(groups, jobs), sched::BalancedShares(work).seconds, 1e-6 * jobs);
  }
}

}  // namespace
}  // namespace medley::reproductions::thesis
