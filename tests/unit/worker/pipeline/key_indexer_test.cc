#include "worker/pipeline/key_indexer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "common/base/rng.h"

namespace medley::worker {
namespace {

TEST(KeyIndexerTest, PositionsNameTheSameIds) {
  base::Rng rng(1);
  KeyIndexer indexer;
  std::vector<uint64_t> keys;
  for (const uint64_t range : {1ULL, 2ULL, 100ULL, 70000ULL, 1000001ULL, 2147483647ULL}) {
    for (const size_t size : {0U, 1U, 5U, 3000U}) {
      std::vector<int32_t> ids(size);
      for (int32_t& id : ids) id = static_cast<int32_t>(rng.Below(range));
      const std::vector<int32_t> original = ids;
      indexer.Index(ids, keys);
      const std::set<uint64_t> expected(original.begin(), original.end());
      EXPECT_TRUE(std::equal(keys.begin(), keys.end(), expected.begin(), expected.end()));
      for (size_t i = 0; i < size; ++i) {
        ASSERT_EQ(keys[static_cast<size_t>(ids[i])], static_cast<uint64_t>(original[i]));
      }
    }
  }
}

TEST(KeyIndexerTest, TakesTheLargestId) {
  KeyIndexer indexer;
  std::vector<uint64_t> keys;
  std::vector<int32_t> ids = {std::numeric_limits<int32_t>::max(), 0, std::numeric_limits<int32_t>::max()};
  indexer.Index(ids, keys);
  EXPECT_EQ(keys, (std::vector<uint64_t>{0, 2147483647}));
  EXPECT_EQ(ids, (std::vector<int32_t>{1, 0, 1}));
}

}  // namespace
}  // namespace medley::worker
