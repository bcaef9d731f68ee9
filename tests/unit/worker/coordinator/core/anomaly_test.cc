#include "worker/coordinator/core/anomaly.h"
#include "common/model/synchronisation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/rng.h"

namespace medley::worker {
namespace {

constexpr int kWindow = 16;

class AnomalyTest : public testing::TestWithParam<model::AnomalyDetector> {
 protected:
  std::unique_ptr<SlownessDetector> Make() const { return MakeDetector({GetParam(), kWindow, 3}); }
  // The seconds of a step that takes `usual` +- 30 %; one in `rare` takes ten times as long (0: none).
  static double Noisy(base::Rng& rng, double usual, uint64_t rare = 0) {
    const double seconds = usual * rng.Uniform(0.7, 1.3);
    return rare > 0 && rng.Below(rare) == 0 ? 10 * seconds : seconds;
  }
  static void Train(SlownessDetector& detector, base::Rng& rng, double usual, int steps) {
    for (int i = 0; i < steps; ++i) detector.Add(Noisy(rng, usual));
  }
};

TEST_P(AnomalyTest, NoiseIsNotSlowness) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    base::Rng rng(seed);
    const auto detector = Make();
    for (int i = 0; i < 20000; ++i) {
      detector->Add(Noisy(rng, 0.003));
      ASSERT_FALSE(detector->slow()) << "seed " << seed << " step " << i;
    }
    EXPECT_NEAR(detector->usual(), 0.003, 0.0003);
  }
}

// Single steps that a busy machine interrupts may look slow for a moment, never for long.
TEST_P(AnomalyTest, RareLongStepsAreNotSlowness) {
  int longest = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    base::Rng rng(seed);
    const auto detector = Make();
    int slow = 0;
    for (int i = 0; i < 20000; ++i) {
      detector->Add(Noisy(rng, 0.003, 100));
      slow = detector->slow() ? slow + 1 : 0;
      longest = std::max(longest, slow);
    }
  }
  EXPECT_LT(longest, 20 * kWindow);
}

TEST_P(AnomalyTest, SlownessIsDetectedAndEnds) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    base::Rng rng(seed);
    const auto detector = Make();
    const double usual = rng.Uniform(0.001, 10), factor = rng.Uniform(2, 20);
    Train(*detector, rng, usual, 10 * kWindow);
    ASSERT_FALSE(detector->slow());
    Train(*detector, rng, factor * usual, 3 * kWindow);
    ASSERT_TRUE(detector->slow()) << "seed " << seed << " factor " << factor;
    Train(*detector, rng, factor * usual, 1000 * kWindow);
    ASSERT_TRUE(detector->slow()) << "being slow for long does not become usual";
    EXPECT_NEAR(detector->usual() / usual, 1, 0.25);
    Train(*detector, rng, usual, 8 * kWindow);
    ASSERT_FALSE(detector->slow()) << "seed " << seed;
    EXPECT_NEAR(detector->usual() / usual, 1, 0.25);
  }
}

// Algorithm 3 of the thesis as printed flags both.
TEST_P(AnomalyTest, FasterIsNotSlow) {
  base::Rng rng(1);
  const auto detector = Make();
  Train(*detector, rng, 0.01, 10 * kWindow);
  for (int i = 0; i < 1000; ++i) {
    detector->Add(Noisy(rng, 0.001));
    ASSERT_FALSE(detector->slow());
  }
}

TEST_P(AnomalyTest, LessThanHalfAsMuchAgainIsNotSlow) {
  const auto detector = Make();
  for (int i = 0; i < 10 * kWindow; ++i) detector->Add(0.01);  // without any deviation
  for (int i = 0; i < 10 * kWindow; ++i) detector->Add(0.0149);
  EXPECT_FALSE(detector->slow());
}

TEST_P(AnomalyTest, NothingIsKnownWhileItWarmsUp) {
  const auto detector = Make();
  for (int i = 0; i < kWindow; ++i) detector->Add(100);  // the first steps of a process
  EXPECT_EQ(detector->recent(), 0);
  for (int i = 0; i < 3 * kWindow; ++i) {
    detector->Add(1);
    EXPECT_EQ(detector->usual(), 0);
    EXPECT_FALSE(detector->slow());
  }
  for (int i = 0; i < 3 * kWindow; ++i) detector->Add(1);
  EXPECT_NEAR(detector->usual(), 1, 1e-9);
}

TEST_P(AnomalyTest, WhoeverIsSlowFromTheBeginningOfAGenerationIsDetected) {
  base::Rng rng(1);
  const auto detector = Make();
  Train(*detector, rng, 0.01, 10 * kWindow);
  detector->Restart(1);
  EXPECT_FALSE(detector->slow());
  Train(*detector, rng, 0.03, 10 * kWindow);
  EXPECT_TRUE(detector->slow());
  EXPECT_NEAR(detector->usual(), 0.01, 0.001);
  const auto restored = Make();
  restored->Restore(0.01);
  Train(*restored, rng, 0.03, 10 * kWindow);
  EXPECT_TRUE(restored->slow());
}

// A third of each step is a fixed cost.
TEST_P(AnomalyTest, AnotherShareOfTheBatchIsNotSlowness) {
  base::Rng rng(1);
  const auto seconds = [](double share) { return 0.01 + 0.02 * share; };
  const auto detector = Make();
  double share = 0.5;
  Train(*detector, rng, seconds(share), 10 * kWindow);
  for (const double next : {0.25, 0.5, 1.0, 0.25, 0.75, 0.1, 1.0, 0.5}) {
    detector->Restart(next / share);
    share = next;
    for (int i = 0; i < 10 * kWindow; ++i) {
      detector->Add(Noisy(rng, seconds(share)));
      ASSERT_FALSE(detector->slow()) << "share " << share;
    }
  }
}

// Switches without a step in between do not make the bound of what is usual grow.
TEST_P(AnomalyTest, SharesThatChangeOftenDoNotAddUp) {
  const auto detector = Make();
  for (int i = 0; i < 10 * kWindow; ++i) detector->Add(0.01);
  for (int i = 0; i < 20; ++i) {
    detector->Restart(2);
    detector->Restart(0.5);
  }
  EXPECT_NEAR(detector->usual(), 0.01, 1e-9);
}

TEST_P(AnomalyTest, IgnoresInvalidTimes) {
  const auto detector = Make();
  for (int i = 0; i < 10 * kWindow; ++i) {
    detector->Add(0.01);
    detector->Add(0);
    detector->Add(-1);
    detector->Add(std::numeric_limits<double>::infinity());
    detector->Add(std::nan(""));
  }
  EXPECT_NEAR(detector->usual(), 0.01, 1e-9);
  EXPECT_NEAR(detector->recent(), 0.01, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Both, AnomalyTest,
                         testing::Values(model::AnomalyDetector::kRunningMean, model::AnomalyDetector::kWindow));

// Steps become three times as long over 4000 steps. A window follows; the mean of all steps remembers.
TEST(AnomalyDetectorTest, OnlyTheRunningMeanDetectsASlowChange) {
  for (const auto& [kind, slow] :
       {std::pair(model::AnomalyDetector::kRunningMean, true), {model::AnomalyDetector::kWindow, false}}) {
    base::Rng rng(1);
    const auto detector = MakeDetector({kind, kWindow, 3});
    for (int i = 0; i < 2000; ++i) detector->Add(0.01 * rng.Uniform(0.9, 1.1));
    for (int i = 0; i < 4000; ++i) detector->Add(0.01 * (1 + i / 2000.0) * rng.Uniform(0.9, 1.1));
    EXPECT_EQ(detector->slow(), slow) << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace medley::worker
