#include "worker/data/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "common/base/rng.h"

namespace medley::worker {
namespace {

std::vector<int64_t> All(const SampleOrder& order) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < order.rows(); ++i) samples.push_back(order(i));
  return samples;
}

// Checks an order against its definition, by all of its samples.
void ExpectWindowsOfBlocks(const SampleOrder& order, const BlockOrder& blocks) {
  const std::vector<int64_t> samples = All(order);
  std::vector<int64_t> sorted = samples;
  std::ranges::sort(sorted);
  for (int64_t i = 0; i < order.rows(); ++i) ASSERT_EQ(sorted[static_cast<size_t>(i)], i);
  if (order.windows() == 1) return;
  int64_t position = 0;
  std::set<int64_t> numbers;
  for (int64_t window = 0; window < order.windows(); ++window) {
    std::vector<int64_t> expected;  // the samples of its blocks
    ASSERT_GE(order.BlocksIn(window), 1);
    ASSERT_LE(order.BlocksIn(window), blocks.window);
    for (int64_t i = 0; i < order.BlocksIn(window); ++i) {
      const SampleOrder::Block block = order.BlockIn(window, i);
      ASSERT_TRUE(numbers.insert(block.number).second);
      ASSERT_EQ(block.first, static_cast<int64_t>(expected.size()));
      const int64_t first = block.number * blocks.block;
      ASSERT_EQ(block.samples, std::min(blocks.block, order.rows() - first));
      for (int64_t k = 0; k < block.samples; ++k) expected.push_back(first + k);
    }
    ASSERT_EQ(order.SamplesIn(window), static_cast<int64_t>(expected.size()));
    std::vector<int64_t> found;
    for (size_t i = 0; i < expected.size(); ++i, ++position) {
      const SampleOrder::Place place = order.PlaceOf(position);
      ASSERT_EQ(place.window, window);
      ASSERT_EQ(samples[static_cast<size_t>(position)], expected[static_cast<size_t>(place.index)]);
      found.push_back(samples[static_cast<size_t>(position)]);
    }
    std::ranges::sort(expected);
    std::ranges::sort(found);
    ASSERT_EQ(found, expected);
  }
  ASSERT_EQ(position, order.rows());
}

TEST(SampleOrderTest, HasEverySampleOnceInWindowsOfBlocks) {
  for (const int64_t rows : {1, 2, 3, 7, 8, 9, 64, 97, 100, 101, 1009, 4096}) {
    for (const int64_t block : {1, 2, 3, 7, 8, 10, 97, 5000}) {
      for (const int64_t window : {1, 2, 5, 1000}) {
        for (const int64_t epoch : {0, 1, 5}) {
          SCOPED_TRACE(testing::Message() << rows << " rows, blocks of " << block << ", windows of " << window);
          const BlockOrder blocks{.block = block, .window = window};
          ExpectWindowsOfBlocks(SampleOrder(rows, 3, blocks, epoch), blocks);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(SampleOrderTest, HasEverySampleOnceForRandomSizes) {
  base::Rng rng(11);
  for (int i = 0; i < 300; ++i) {
    const auto below = [&](uint64_t n) { return static_cast<int64_t>(1 + rng.Below(n)); };
    const int64_t rows = below(3000);
    const BlockOrder blocks{.block = below(100), .window = below(40)};
    SCOPED_TRACE(testing::Message() << rows << " rows, blocks of " << blocks.block << ", windows of " << blocks.window);
    ExpectWindowsOfBlocks(SampleOrder(rows, rng.Next(), blocks, below(3)), blocks);
    if (HasFatalFailure()) return;
  }
}

// No window is much shorter than others, in which samples would be shuffled less well.
TEST(SampleOrderTest, WindowsDifferByOneBlock) {
  for (const int64_t rows : {1000, 1009, 1010, 1100}) {
    const SampleOrder order(rows, 1, {.block = 10, .window = 8}, 0);
    EXPECT_EQ(order.windows(), ((rows + 9) / 10 + 7) / 8);
    int64_t fewest = 8, most = 0;
    for (int64_t w = 0; w < order.windows(); ++w) {
      fewest = std::min(fewest, order.BlocksIn(w));
      most = std::max(most, order.BlocksIn(w));
    }
    EXPECT_LE(most - fewest, 1);
  }
}

TEST(SampleOrderTest, WithoutWindowsItIsThePermutationOfBefore) {
  for (const BlockOrder& blocks : {BlockOrder{}, BlockOrder{.block = 16, .window = 63}}) {
    const SampleOrder order(1000, 7, blocks, 2);
    const Permutation permutation(1000, 7, 2);
    for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(order(i), permutation(i));
  }
}

TEST(SampleOrderTest, SeedAndEpochChangeBlocksAndSamples) {
  const BlockOrder blocks{.block = 10, .window = 20};
  const SampleOrder order(10'000, 1, blocks, 0), again(10'000, 1, blocks, 0), seed(10'000, 2, blocks, 0);
  EXPECT_EQ(All(order), All(again));
  EXPECT_TRUE(order.Equals(again));
  EXPECT_FALSE(order.Equals(seed));
  EXPECT_EQ(All(order.Next()), All(SampleOrder(10'000, 1, blocks, 1)));
  for (const SampleOrder& other : {seed, order.Next()}) {
    int samples = 0, numbers = 0;
    for (int64_t i = 0; i < 10'000; ++i) samples += order(i) == other(i);
    for (int64_t i = 0; i < 20; ++i) numbers += order.BlockIn(0, i).number == other.BlockIn(0, i).number;
    EXPECT_LT(samples, 20);
    EXPECT_LT(numbers, 5);
  }
}

// The samples of a window must be spread over its blocks like a random sample, in every part of the window, and each
// window must do so in another way.
TEST(SampleOrderTest, AWindowIsShuffled) {
  const SampleOrder order(100'000, 5, {.block = 100, .window = 100}, 0);
  ASSERT_EQ(order.windows(), 10);
  for (const int64_t window : {int64_t{0}, int64_t{6}}) {
    std::vector<int> bins(10);
    for (int64_t i = 0; i < 1000; ++i) ++bins[static_cast<size_t>(order.PlaceOf(window * 10'000 + i).index / 1000)];
    for (const int count : bins) EXPECT_NEAR(count, 100, 5 * std::sqrt(100.0));
  }
  int same = 0;
  for (int64_t i = 0; i < 10'000; ++i) same += order.PlaceOf(i).index == order.PlaceOf(10'000 + i).index;
  EXPECT_LT(same, 20);
}

TEST(PermutationTest, PositionOfIsTheInverse) {
  for (const int64_t rows : {1, 2, 3, 5, 97, 1024, 1025}) {
    const Permutation order(rows, 9, 4);
    for (int64_t i = 0; i < rows; ++i) ASSERT_EQ(order.PositionOf(order(i)), i);
  }
}

}  // namespace
}  // namespace medley::worker
