#include "scheduler-service/devices/shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "common/base/rng.h"

namespace medley::sched {
namespace {

using Work = DeviceProblem::Work;

TEST(BalancedSharesTest, AllEndTogether) {
  const Shares shares = BalancedShares({{0, 1}, {0, 3}});
  EXPECT_DOUBLE_EQ(shares.shares[0], 0.75);
  EXPECT_DOUBLE_EQ(shares.shares[1], 0.25);
  EXPECT_DOUBLE_EQ(shares.seconds, 0.75);
  EXPECT_EQ(BalancedShares({{0, 1}, {2, 1}}).shares[1], 0);  // its fixed time alone is too long
  EXPECT_DOUBLE_EQ(BalancedShares({{1, 0}}).seconds, 1);     // no work that divides
}

// No other division is faster, in fractions and in whole samples.
TEST(BalancedSharesTest, NoRandomDivisionIsFaster) {
  base::Rng rng(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<Work> work(1 + rng.Below(6));
    for (Work& one : work) one = {rng.Uniform(0, 0.5), rng.Uniform(0.1, 5)};
    const int samples = 1 + static_cast<int>(rng.Below(40));
    const Shares ideal = BalancedShares(work), whole = BalancedSamples(work, samples);
    EXPECT_NEAR(std::accumulate(ideal.shares.begin(), ideal.shares.end(), 0.0), 1, 1e-9);
    EXPECT_NEAR(std::accumulate(whole.shares.begin(), whole.shares.end(), 0.0), 1, 1e-9);
    EXPECT_LE(ideal.seconds, whole.seconds + 1e-9);
    for (int draw = 0; draw < 20; ++draw) {
      std::vector<int> counts(work.size(), 0);
      for (int s = 0; s < samples; ++s) ++counts[rng.Below(work.size())];
      double seconds = 0;
      for (size_t i = 0; i < work.size(); ++i) {
        if (counts[i] > 0) seconds = std::max(seconds, work[i].At(static_cast<double>(counts[i]) / samples));
      }
      EXPECT_LE(ideal.seconds, seconds + 1e-9) << round;
      // Where there are at least as many samples as devices, each gets one, even where its fixed time does not pay.
      if (samples > 4 * static_cast<int>(work.size())) {
        EXPECT_LE(whole.seconds, seconds + 0.51) << round;
      }
    }
  }
}

}  // namespace
}  // namespace medley::sched
