#include "worker/data/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace medley::worker {
namespace {

TEST(PermutationTest, IsABijectionForAnySize) {
  for (const int64_t rows : {1, 2, 3, 4, 5, 16, 17, 100, 1023, 1024, 1025, 32561}) {
    const Permutation order(rows, 1, 0);
    std::vector<bool> seen(static_cast<size_t>(rows));
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = order(i);
      ASSERT_GE(row, 0);
      ASSERT_LT(row, rows);
      ASSERT_FALSE(seen[static_cast<size_t>(row)]) << rows;
      seen[static_cast<size_t>(row)] = true;
    }
  }
}

TEST(PermutationTest, SeedAndEpochChangeTheOrder) {
  const Permutation a(1000, 1, 0);
  const Permutation again(1000, 1, 0);
  const Permutation epoch(1000, 1, 1);
  const Permutation seed(1000, 2, 0);
  int same_epoch = 0;
  int same_seed = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(a(i), again(i));
    same_epoch += a(i) == epoch(i);
    same_seed += a(i) == seed(i);
  }
  EXPECT_LT(same_epoch, 20);
  EXPECT_LT(same_seed, 20);
}

// The first tenth must be spread over all rows like a random sample.
TEST(PermutationTest, PrefixesAreUnbiased) {
  constexpr int64_t kRows = 50000;
  const Permutation order(kRows, 7, 3);
  std::vector<int> bins(10);
  for (int64_t i = 0; i < kRows / 10; ++i) ++bins[static_cast<size_t>(order(i) * 10 / kRows)];
  for (const int count : bins) EXPECT_NEAR(count, 500, 5 * std::sqrt(500.0));
}

}  // namespace
}  // namespace medley::worker
