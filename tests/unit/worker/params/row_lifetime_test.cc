#include "worker/params/row_lifetime.h"

#include <gtest/gtest.h>

#include <array>

#include "common/base/rng.h"

namespace medley::worker {
namespace {

TEST(RowLifetimeTest, CountsOnlyWhereSomethingFollowsFromIt) {
  EXPECT_FALSE(RowLifetime{}.Counts());
  EXPECT_TRUE((RowLifetime{.admit_after = 2}.Counts()));
  EXPECT_TRUE((RowLifetime{.evict_after = 1}.Counts()));
  EXPECT_TRUE((RowLifetime{.decay_steps = 1}.Counts()));
}

TEST(RowLifetimeTest, AKeyIsKnownUntilItWasNotSeenForSoLong) {
  const RowLifetime lifetime{.evict_after = 3};
  EXPECT_FALSE(lifetime.IsKnown({}, 1)) << "without a sighting";
  RowUse use = lifetime.Seen({}, 5);
  EXPECT_EQ(use, (RowUse{1, 5}));
  EXPECT_TRUE(lifetime.IsKnown(use, 8));
  EXPECT_FALSE(lifetime.IsKnown(use, 9));
  EXPECT_EQ(lifetime.Seen(use, 8), (RowUse{2, 8}));
  EXPECT_EQ(lifetime.Seen(use, 9), (RowUse{1, 9})) << "it begins again";
}

// Against a loop over the steps.
TEST(RowLifetimeTest, SightingsAreHalvedInTheirSteps) {
  base::Rng rng(3);
  for (int round = 0; round < 200; ++round) {
    const RowLifetime lifetime{.decay_steps = 1 + static_cast<int64_t>(rng.Below(6))};
    RowUse use;
    uint32_t expected = 0;
    for (int64_t step = 1; step <= 60; ++step) {
      if (step % lifetime.decay_steps == 0) expected /= 2;
      ASSERT_EQ(lifetime.SightingsAt(use, step), expected) << step;
      ASSERT_EQ(lifetime.IsKnown(use, step), expected > 0);
      if (rng.Below(3) != 0) continue;
      use = lifetime.Seen(use, step);
      ++expected;
      ASSERT_EQ(use.sightings, expected);
    }
  }
  const RowLifetime fast{.decay_steps = 1};
  EXPECT_EQ(fast.SightingsAt({UINT32_MAX, 1}, 1000), 0U) << "more halvings than bits";
  EXPECT_EQ(RowLifetime{}.Seen({UINT32_MAX, 1}, 2).sightings, UINT32_MAX);
}

TEST(RowLifetimeTest, AUseIsKeptInFloats) {
  std::array<float, kUseFloats> floats{};
  for (const RowUse use : {RowUse{}, RowUse{1, 2}, RowUse{123456789, 3000000000}, RowUse{0x7F800001, UINT32_MAX}}) {
    PutUse(use, floats);
    EXPECT_EQ(UseOf(floats), use);
  }
}

}  // namespace
}  // namespace medley::worker
