#include "worker/aten/row_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "common/base/rng.h"

namespace medley::worker::aten {
namespace {

using SlotKeys = std::vector<uint64_t>;

TEST(RowSlotsTest, KnownRowsKeepTheirSlots) {
  RowSlots slots(100, 4);
  const RowSlots::Fetched first = slots.Fetch(SlotKeys{3, 7, 90}, 0, 0), again = slots.Fetch(SlotKeys{7, 90}, 0, 0);
  EXPECT_EQ(first.missing, (std::vector<size_t>{0, 1, 2}));
  EXPECT_TRUE(again.missing.empty());
  EXPECT_EQ(again.slots, (std::vector<int64_t>{first.slots[1], first.slots[2]}));
  EXPECT_EQ(slots.hits(), 2);
  EXPECT_EQ(slots.misses(), 3);
}

TEST(RowSlotsTest, OnlyChangedRowsAreWrittenBack) {
  RowSlots slots(100, 2);
  slots.Fetch(SlotKeys{1, 2}, 0, 0);
  slots.SetChanged(SlotKeys{2});
  const RowSlots::Fetched others = slots.Fetch(SlotKeys{3, 4}, 0, 0);
  ASSERT_EQ(others.evicted.size(), 1U);
  EXPECT_EQ(others.evicted.front().key, 2U);
  EXPECT_TRUE(slots.TakeChanged().empty());
  slots.SetChanged(SlotKeys{4});
  EXPECT_EQ(slots.TakeChanged().size(), 1U);
  EXPECT_TRUE(slots.TakeChanged().empty()) << "they count as unchanged from then on";
}

TEST(RowSlotsTest, RowsOfStepsThatCanBeUndoneStay) {
  RowSlots slots(100, 2);
  slots.Fetch(SlotKeys{1}, /*step=*/5, /*undo_limit=*/4);
  slots.Fetch(SlotKeys{2}, 6, 4);
  EXPECT_EQ(slots.capacity(), 2);
  const RowSlots::Fetched more = slots.Fetch(SlotKeys{3}, 7, 4);
  EXPECT_EQ(slots.capacity(), 3) << "all are pinned";
  EXPECT_TRUE(slots.Fetch(SlotKeys{1, 2, 3}, 0, 4).missing.empty());
  const RowSlots::Fetched later = slots.Fetch(SlotKeys{4}, 8, 6);  // steps 5 and 6 are for good
  EXPECT_EQ(slots.capacity(), 3);
  EXPECT_NE(later.slots, more.slots);
}

// Against a map: each key has a slot of its own, and a row that loses its slot after a change is written back once.
TEST(RowSlotsTest, RandomUsesAreThoseOfAMap) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    base::Rng rng(seed);
    RowSlots slots(64, 1 + static_cast<int64_t>(rng.Below(40)));
    std::map<uint64_t, int64_t> host, device;  // values by key
    std::map<int64_t, uint64_t> in;            // keys by slot
    for (int64_t step = 1; step <= 200; ++step) {
      std::set<uint64_t> keys;
      for (uint64_t i = rng.Below(9); i > 0; --i) keys.insert(rng.Below(1 + rng.Below(64)));
      const SlotKeys list(keys.begin(), keys.end());
      const RowSlots::Fetched fetched = slots.Fetch(list, step, std::max<int64_t>(0, step - 2));
      for (const RowSlots::Evicted& row : fetched.evicted) {
        ASSERT_EQ(in.at(row.slot), row.key);
        host[row.key] = device.at(row.key);
      }
      for (const size_t k : fetched.missing) {
        in[fetched.slots[k]] = list[k];
        device[list[k]] = host[list[k]];
      }
      std::set<int64_t> distinct(fetched.slots.begin(), fetched.slots.end());
      ASSERT_EQ(distinct.size(), list.size());
      for (size_t k = 0; k < list.size(); ++k) {
        ASSERT_EQ(in.at(fetched.slots[k]), list[k]);
        ++device[list[k]];
      }
      slots.SetChanged(list);
    }
    std::map<uint64_t, int64_t> all = host;
    for (const RowSlots::Evicted& row : slots.TakeChanged()) all[row.key] = device.at(row.key);
    for (const auto& [key, value] : device) EXPECT_EQ(all[key], value) << "seed " << seed << ", key " << key;
  }
}

// A tenth of the slots has most of the uses of keys as a power law draws them.
TEST(RowSlotsTest, HotRowsStay) {
  constexpr int kRows = 20000;
  RowSlots slots(kRows, kRows / 10);
  base::Rng rng(3);
  std::vector<double> sum(kRows);
  for (size_t i = 0; i < sum.size(); ++i) {
    sum[i] = (i > 0 ? sum[i - 1] : 0) + std::pow(static_cast<double>(i + 1), -1.1);
  }
  for (int64_t step = 1; step <= 300; ++step) {
    std::set<uint64_t> keys;
    for (int i = 0; i < 512; ++i) {
      const auto found = std::ranges::lower_bound(sum, rng.Uniform(0, sum.back()));
      keys.insert(static_cast<uint64_t>(std::min<ptrdiff_t>(found - sum.begin(), kRows - 1)));
    }
    slots.Fetch(SlotKeys(keys.begin(), keys.end()), step, std::max<int64_t>(0, step - 2));
  }
  const double rate = static_cast<double>(slots.hits()) / static_cast<double>(slots.hits() + slots.misses());
  std::printf("hit rate of distinct keys %.3f\n", rate);
  EXPECT_GT(rate, 0.5);
  EXPECT_EQ(slots.capacity(), kRows / 10);
}

}  // namespace
}  // namespace medley::worker::aten
