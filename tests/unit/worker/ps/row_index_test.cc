// Tests RowIndex and RowTable::ForEach against std::unordered_map.
#include "worker/ps/row_index.h"

#include <gtest/gtest.h>

#include <unordered_map>
#include <vector>

#include "worker/ps/row_table.h"

namespace medley::worker {
namespace {

struct IndexedKeys {
  const std::vector<uint64_t>& keys;
  uint64_t operator()(uint32_t row) const { return keys[row]; }
  void Prefetch(uint32_t) const {}
};

TEST(RowIndexTest, FindsEachKeyThatWasAddedAndNoOther) {
  for (const uint64_t seed : {1, 2, 3}) {
    base::Rng rng(seed);
    RowIndex index;
    std::vector<uint64_t> keys;
    std::unordered_map<uint64_t, uint32_t> expected;
    for (int i = 0; i < 200'000; ++i) {
      const uint64_t key = rng.Below(3) == 0 ? rng.Next() : rng.Below(150'000);
      const uint64_t hash = RowIndex::Hash(key);
      const auto known = expected.find(key);
      const uint32_t found = index.Find(key, hash, IndexedKeys{keys});
      ASSERT_EQ(found, known == expected.end() ? RowIndex::kNone : known->second) << key;
      if (known != expected.end()) continue;
      const auto row = static_cast<uint32_t>(keys.size());
      keys.push_back(key);
      expected[key] = row;
      index.Add(hash, row, IndexedKeys{keys});
    }
    for (const auto& [key, row] : expected) {
      ASSERT_EQ(index.Find(key, RowIndex::Hash(key), IndexedKeys{keys}), row);
    }
  }
}

// As rows that are used for other keys: the index neither forgets a row nor keeps a removed one.
TEST(RowIndexTest, RowsAreRemovedAndTheirNumbersUsedAgain) {
  for (const uint64_t seed : {1, 2, 3}) {
    base::Rng rng(seed);
    RowIndex index;
    std::vector<uint64_t> keys(5000);
    std::unordered_map<uint64_t, uint32_t> expected;
    for (uint32_t row = 0; row < keys.size(); ++row) {
      keys[row] = row;
      index.Add(RowIndex::Hash(row), row, IndexedKeys{keys});
      expected[row] = row;
    }
    for (int i = 0; i < 300'000; ++i) {
      const auto row = static_cast<uint32_t>(rng.Below(keys.size()));
      const uint64_t key = seed == 1 ? rng.Next() : rng.Below(20'000);
      if (expected.contains(key)) {
        ASSERT_EQ(index.Find(key, RowIndex::Hash(key), IndexedKeys{keys}), expected[key]);
        continue;
      }
      ASSERT_EQ(index.Find(key, RowIndex::Hash(key), IndexedKeys{keys}), RowIndex::kNone);
      const uint64_t old = keys[row];
      index.Remove(RowIndex::Hash(old), row);
      ASSERT_EQ(index.Find(old, RowIndex::Hash(old), IndexedKeys{keys}), RowIndex::kNone);
      expected.erase(old);
      keys[row] = key;
      expected[key] = row;
      index.Add(RowIndex::Hash(key), row, IndexedKeys{keys});
    }
    for (const auto& [key, row] : expected) {
      ASSERT_EQ(index.Find(key, RowIndex::Hash(key), IndexedKeys{keys}), row);
    }
  }
}

// Rows are created while later keys of the same batch are looked up already, some of them the same key.
TEST(RowTableTest, ABatchFindsTheRowsThatItCreates) {
  base::Rng rng(9);
  RowTable table({.operation = 0, .name = "table", .rows = 1 << 20, .columns = 3, .sparse = true},
                 {.kind = OptimizerKind::kAdam}, 1);
  std::unordered_map<uint64_t, uint32_t> expected;
  for (const size_t size : {0U, 1U, 15U, 16U, 17U, 31U, 32U, 33U, 5000U, 20000U}) {
    std::vector<uint64_t> keys(size);
    for (uint64_t& key : keys) key = rng.Below(size == 20000 ? 1 << 20 : 3 * size);
    size_t visited = 0;
    table.ForEach(keys, table.stride(), [&](size_t i, uint32_t row) {
      ASSERT_EQ(i, visited++);
      const auto known = expected.find(keys[i]);
      ASSERT_EQ(row, known == expected.end() ? RowTable::kNoRow : known->second);
      if (known == expected.end()) expected[keys[i]] = table.Create(keys[i]);
    });
    ASSERT_EQ(visited, size);
  }
  EXPECT_EQ(table.size(), expected.size());
  for (const auto& [key, row] : expected) {
    table.ForEach({&key, 1}, 0, [&](size_t, uint32_t found) { ASSERT_EQ(found, row); });
    ASSERT_EQ(table.Key(row), key);
  }
}

}  // namespace
}  // namespace medley::worker
