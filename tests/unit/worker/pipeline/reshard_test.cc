#include "worker/pipeline/reshard.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace medley::worker {
namespace {

TEST(ReshardTest, SplitFollowsTheShares) {
  EXPECT_EQ(Split(100, std::vector<double>{1, 3}), (std::vector<SampleRange>{{0, 25}, {25, 75}}));
  EXPECT_EQ(Split(1, std::vector<double>{1, 1, 1}).size(), 3U);
  EXPECT_EQ(Split(0, std::vector<double>{1}), (std::vector<SampleRange>{{0, 0}}));
}

TEST(ReshardTest, TwoToThree) {
  const std::vector<Transfer> expected = {{0, 0, {0, 4}}, {0, 1, {4, 2}}, {1, 1, {6, 2}}, {1, 2, {8, 4}}};
  EXPECT_EQ(Reshard(12, std::vector<double>{1, 1}, std::vector<double>{1, 1, 1}), expected);
}

// Every sample is sent exactly once, from its replica in one stage to its replica in the next.
TEST(ReshardTest, CoversEverySampleOnce) {
  base::Rng rng(3);
  for (int i = 0; i < 500; ++i) {
    std::vector<double> from(1 + rng.Below(5));
    std::vector<double> to(1 + rng.Below(5));
    for (double& share : from) share = rng.Uniform(0.01, 1);
    for (double& share : to) share = rng.Uniform(0.01, 1);
    const int count = static_cast<int>(rng.Below(200));
    const std::vector<SampleRange> owners = Split(count, from);
    const std::vector<SampleRange> takers = Split(count, to);
    std::vector<int> seen(static_cast<size_t>(count));
    for (const Transfer& transfer : Reshard(count, from, to)) {
      const SampleRange owner = owners[static_cast<size_t>(transfer.from)];
      const SampleRange taker = takers[static_cast<size_t>(transfer.to)];
      for (int s = transfer.range.first; s < transfer.range.first + transfer.range.count; ++s) {
        ++seen[static_cast<size_t>(s)];
        ASSERT_TRUE(s >= owner.first && s < owner.first + owner.count);
        ASSERT_TRUE(s >= taker.first && s < taker.first + taker.count);
      }
    }
    for (const int times : seen) ASSERT_EQ(times, 1);
  }
}

TEST(ReshardTest, MicroBatchesCoverTheBatch) {
  for (const int count : {1, 7, 512, 305}) {
    for (const int micros : {1, 2, 4, 7}) {
      int next = 0;
      for (int i = 0; i < micros; ++i) {
        const SampleRange range = MicroBatch(count, i, micros);
        EXPECT_EQ(range.first, next);
        next += range.count;
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(ReshardTest, SharesOfGroupsAreDividedAmongTheirUnits) {
  model::Stage stage;
  stage.groups = {{"a", 2, 0.5}, {"b", 1, 0.5}};
  EXPECT_EQ(ReplicaShares(stage), (std::vector<double>{0.25, 0.25, 0.5}));
}

}  // namespace
}  // namespace medley::worker
