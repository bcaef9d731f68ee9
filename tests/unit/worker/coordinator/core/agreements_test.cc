#include "worker/coordinator/core/agreements.h"

#include <gtest/gtest.h>

#include <string>

#include "common/model/sync.h"

namespace medley::worker {
namespace {

// 'a' for each step that agrees.
std::string Steps(Agreements& agreements, int count, int must = 0) {
  std::string steps;
  for (int step = 1; step <= count; ++step) steps += agreements.Next(step == must) ? 'a' : '-';
  return steps;
}

TEST(AgreementsTest, EveryStepAgreesByDefault) {
  Agreements all;
  EXPECT_EQ(Steps(all, 4), "aaaa");
  EXPECT_EQ(all.fraction(), 1);
}

TEST(AgreementsTest, AFractionIsSpreadEvenly) {
  Agreements third({.mode = model::SyncMode::kPercentage, .fraction = 1.0 / 3});
  EXPECT_EQ(Steps(third, 12), "--a--a--a--a");
  Agreements most({.mode = model::SyncMode::kPercentage, .fraction = 0.75});
  EXPECT_EQ(Steps(most, 8), "-aaa-aaa");
  Agreements whole({.mode = model::SyncMode::kPercentage, .fraction = 1});
  EXPECT_EQ(Steps(whole, 3), "aaa");
}

TEST(AgreementsTest, StepsThatMustAgreeDo) {
  Agreements none({.mode = model::SyncMode::kNone});
  EXPECT_EQ(Steps(none, 6, 4), "---a--");
  Agreements quarter({.mode = model::SyncMode::kPercentage, .fraction = 0.25});
  EXPECT_EQ(Steps(quarter, 9, 2), "-a---a---") << "the next one follows four steps later";
}

// Computing takes 10 ms, an agreement 20 ms: at one step of 100 synchronisation takes 2 % of the time of computation.
TEST(AgreementsTest, FlexibleReachesTheTargetRatio) {
  Agreements flexible({.mode = model::SyncMode::kFlexible, .target_ratio = 0.02});
  EXPECT_EQ(flexible.fraction(), 0.02) << "until an agreement is measured";
  for (int step = 1; step <= 2000; ++step) {
    const bool agrees = flexible.Next(false);
    flexible.Add("a", step, 0.010, agrees ? 0.020 : 0, agrees);
    flexible.Reported(step);
  }
  EXPECT_NEAR(flexible.fraction(), 0.01, 0.003);
  EXPECT_NEAR(flexible.ratio(), 0.02, 0.015);
  const double before = flexible.fraction();
  for (int step = 1; step <= 2000; ++step) {
    const bool agrees = flexible.Next(false);
    flexible.Add("a", 2000 + step, 0.010, agrees ? 0.002 : 0, agrees);
    flexible.Reported(2000 + step);
  }
  EXPECT_GT(flexible.fraction(), 3 * before) << "links became faster";
}

TEST(AgreementsTest, FlexibleIgnoresSmallChanges) {
  Agreements flexible({.mode = model::SyncMode::kFlexible, .target_ratio = 0.1});
  for (int step = 1; step <= 500; ++step) {
    const bool agrees = flexible.Next(false);
    flexible.Add("a", step, 0.010, agrees ? 0.004 : 0, agrees);
    flexible.Reported(step);
  }
  const double before = flexible.fraction();
  for (int step = 1; step <= 500; ++step) {
    const bool agrees = flexible.Next(false);
    flexible.Add("a", 500 + step, 0.0105, agrees ? 0.004 : 0, agrees);
    flexible.Reported(500 + step);
  }
  EXPECT_EQ(flexible.fraction(), before);
}

// One agreement over a link that has become slow is enough, and two over one that has become fast.
TEST(AgreementsTest, FlexibleFollowsTheLink) {
  Agreements flexible({.mode = model::SyncMode::kFlexible, .target_ratio = 0.1});
  int64_t step = 0;
  const auto agree = [&](double seconds) {
    flexible.Add("a", ++step, 0.010, seconds, true);
    flexible.Reported(step);
  };
  for (int i = 0; i < 50; ++i) agree(0.001);
  EXPECT_EQ(flexible.fraction(), 1);
  agree(0.050);
  EXPECT_DOUBLE_EQ(flexible.fraction(), 0.1 * 0.010 / 0.050);
  agree(0.001);
  EXPECT_DOUBLE_EQ(flexible.fraction(), 0.1 * 0.010 / 0.050) << "perhaps by chance";
  agree(0.001);
  EXPECT_EQ(flexible.fraction(), 1);
}

// A slow replica makes the others wait in every agreement, and groups add gradients in every step. Neither depends on
// how often replicas agree.
TEST(AgreementsTest, FlexibleCountsOnlyTheAgreementItself) {
  Agreements flexible({.mode = model::SyncMode::kFlexible, .target_ratio = 0.1});
  for (int step = 1; step <= 2000; ++step) {
    const bool agrees = flexible.Next(false);
    flexible.Add("in a group", step, 0.010, agrees ? 0.030 + 0.004 : 0.030, agrees);
    flexible.Add("slow", step, 0.015, agrees ? 0.004 : 0, agrees);
    flexible.Add("fast", step, 0.005, agrees ? 0.500 + 0.004 : 0, agrees);
    flexible.Reported(step);
  }
  EXPECT_NEAR(flexible.fraction(), 0.1 * 0.010 / 0.004, 0.06);
  EXPECT_NEAR(flexible.ratio(), 0.1, 0.03);
}

}  // namespace
}  // namespace medley::worker
