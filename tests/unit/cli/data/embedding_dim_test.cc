#include "cli/data/embedding_dim.h"

#include <gtest/gtest.h>

#include <vector>

namespace medley::cli {
namespace {

// The numbers of fast.ai's rule.
TEST(EmbeddingDimTest, GrowsWithTheNumberOfValues) {
  EXPECT_EQ(EmbeddingDim(0), 2);
  EXPECT_EQ(EmbeddingDim(2), 2);
  EXPECT_EQ(EmbeddingDim(7), 5);
  EXPECT_EQ(EmbeddingDim(42), 13);
  EXPECT_EQ(EmbeddingDim(100), 21);
  EXPECT_EQ(EmbeddingDim(1000), 50);
  EXPECT_EQ(EmbeddingDim(int64_t{1} << 40), 50);
}

TEST(EmbeddingDimTest, ColumnsThatShareATableHaveTheLargest) {
  EXPECT_EQ(SharedEmbeddingDim({}), 8);
  EXPECT_EQ(SharedEmbeddingDim(std::vector<int64_t>{2, 2}), 4);
  EXPECT_EQ(SharedEmbeddingDim(std::vector<int64_t>{7, 42, 3}), 16);
  EXPECT_EQ(SharedEmbeddingDim(std::vector<int64_t>{100000}), 52);
}

}  // namespace
}  // namespace medley::cli
