// Tests copies of a RowStore with rows on the disk to another store, beside pulls, steps and fetching ahead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <thread>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/ps/row_store.h"

namespace medley::worker::row_moves_test {
namespace {

using base::IsOk;

constexpr int kTables = 2;
constexpr size_t kColumns = 64;
constexpr uint64_t kSeed = 7;

std::vector<ParameterSpec> Specs() {
  std::vector<ParameterSpec> specs;
  for (int table = 0; table < kTables; ++table) {
    specs.push_back({.operation = table,
                     .name = "table",
                     .rows = 100000,
                     .columns = static_cast<int>(kColumns),
                     .sparse = true,
                     .initializer = Initializer::kUniform,
                     .scale = 0.1f});
  }
  return specs;
}

using Keys = std::vector<uint64_t>;

Keys From(uint64_t first, size_t count) {
  Keys keys(count);
  std::iota(keys.begin(), keys.end(), first);
  return keys;
}

absl::Status Apply(RowStore& store, int64_t step, std::span<const Keys> keys) {
  std::vector<std::vector<float>> gradients;
  std::vector<GradientView> views;
  for (const Keys& of_table : keys) {
    base::Rng rng(static_cast<uint64_t>(step));
    std::vector<float>& values = gradients.emplace_back(of_table.size() * kColumns);
    for (float& value : values) value = static_cast<float>(rng.Uniform(-1, 1));
  }
  for (size_t t = 0; t < keys.size(); ++t) views.push_back({static_cast<int>(t), keys[t], gradients[t]});
  return store.Apply(step, views, 10);
}

std::vector<float> Read(RowStore& store, int table, const Keys& keys) {
  std::vector<float> rows(keys.size() * kColumns);
  EXPECT_THAT(store.Read(table, keys, rows), IsOk());
  return rows;
}

// As a server's rows are copied. `between`: called with each piece. Returns the step of the first piece.
int64_t Copy(
    RowStore& from, RowStore& to, int64_t since,
    absl::FunctionRef<void(const RowPiece&)> between = [](const RowPiece&) {}) {
  int64_t first = -1;
  EXPECT_THAT(from.Export(
                  since, [](int, uint64_t) { return true; },
                  [&](const RowPiece& piece) {
                    if (first < 0) first = piece.at_step;
                    between(piece);
                    return piece.keys.empty() ? absl::OkStatus() : to.Import(piece.table, piece.keys, piece.values);
                  }),
              IsOk());
  return first;
}

class RowMovesTest : public testing::TestWithParam<int> {
 protected:
  RowMovesTest() : folder_(base::MakeTempDir("row-moves").value()) {}
  ~RowMovesTest() override { base::RemoveTempDir(folder_); }

  // So few bytes that each table has the least number of hot rows.
  std::shared_ptr<RowStore> Tiered(const Optimizer& optimizer) {
    auto store = RowStore::Make(Specs(), optimizer, kSeed, {.memory_bytes = 1, .folder = folder_});
    EXPECT_THAT(store.status(), IsOk());
    return *store;
  }

  const std::filesystem::path folder_;
};

// Its old copy is then in what the export reads, and nothing says that the row has changed since the first copy.
TEST_F(RowMovesTest, ARowThatBecomesColdDuringAnExportIsNotItsOldCopy) {
  const Optimizer optimizer = MakeOptimizer("adagrad", 0.1).value();
  const auto store = Tiered(optimizer), to = Tiered(optimizer);
  RowStore memory(Specs(), optimizer, kSeed);
  int64_t step = 0;
  const auto train = [&](const Keys& keys) {
    ++step;
    ASSERT_THAT(Apply(memory, step, {&keys, 1}), IsOk());
    ASSERT_THAT(Apply(*store, step, {&keys, 1}), IsOk());
  };
  constexpr uint64_t kRows = 6000, kLast = 5900;
  for (uint64_t key = 0; key < kRows; key += 50) train(From(key, 50));
  train(From(kLast, 50));
  train({0});  // an undo does not need the rows before
  int pieces = 0;
  int64_t cooled = 0;
  Copy(*store, *to, 0, [&](const RowPiece& piece) {
    if (piece.table != 0 || ++pieces != 2) return;  // the first cold ones
    cooled = store->TierCounts()->cooled;
    Read(*store, 0, From(1000, 1000));
    cooled = store->TierCounts()->cooled - cooled;
  });
  EXPECT_GE(pieces, 4);
  EXPECT_GE(cooled, 900);
  to->SetApplied(step, 0);
  EXPECT_EQ(Read(*to, 0, From(0, kRows)), Read(memory, 0, From(0, kRows)));
}

Keys RandomKeys(base::Rng& rng, uint64_t most) {
  std::set<uint64_t> keys;
  for (uint64_t k = 20 + rng.Below(60); k > 0; --k) keys.insert(rng.Below(rng.Below(3) == 0 ? most : 1 + most / 8));
  return {keys.begin(), keys.end()};
}

// Each in a thread of its own, as in a job that moves its rows. Some steps are undone before a move.
TEST_P(RowMovesTest, EachPullHasTheBitsOfRowsInMemory) {
  base::Rng rng(static_cast<uint64_t>(GetParam()));
  const Optimizer optimizer = MakeOptimizer("adam", 0.01).value();
  RowStore memory(Specs(), optimizer, kSeed);
  std::shared_ptr<RowStore> store = Tiered(optimizer);
  const uint64_t most = 200 + rng.Below(1500);
  const auto random_keys = [&] { return std::vector<Keys>{RandomKeys(rng, most), RandomKeys(rng, most)}; };
  std::vector<Keys> next = random_keys();
  int64_t step = 0;
  const auto expect_next = [&](RowStore& of) {
    for (int table = 0; table < kTables; ++table) of.Expect(table, next[static_cast<size_t>(table)]);
  };
  const auto train = [&] {
    const std::vector<Keys> keys = std::exchange(next, random_keys());
    for (int table = 0; table < kTables; ++table) {
      const Keys& of_table = keys[static_cast<size_t>(table)];
      ASSERT_EQ(Read(*store, table, of_table), Read(memory, table, of_table)) << "after step " << step;
    }
    std::jthread expects;
    if (rng.Below(4) != 0) expects = std::jthread([&] { expect_next(*store); });
    ++step;
    ASSERT_THAT(Apply(memory, step, keys), IsOk());
    ASSERT_THAT(Apply(*store, step, keys), IsOk());
  };
  for (int move = 0; move < 6; ++move) {
    for (uint64_t i = rng.Below(200); i > 0; --i) ASSERT_NO_FATAL_FAILURE(train());
    const std::shared_ptr<RowStore> to = Tiered(optimizer);
    std::atomic<bool> is_copied = false;
    int64_t since = 0;
    {
      const std::jthread copies([&] {
        since = std::max<int64_t>(0, Copy(*store, *to, 0) - 1);
        is_copied = true;
      });
      const std::jthread snapshots([&] {
        while (!is_copied) {
          const auto snapshot = store->TakeSnapshot();
          EXPECT_THAT(store->ExportSnapshot(*snapshot, [](const RowPiece&) { return absl::OkStatus(); }), IsOk());
          store->EndSnapshot(*snapshot);
        }
      });
      while (!is_copied) ASSERT_NO_FATAL_FAILURE(train());
    }
    for (uint64_t i = rng.Below(20); i > 0; --i) ASSERT_NO_FATAL_FAILURE(train());
    const std::jthread expects([&, of = store] { expect_next(*of); });
    if (rng.Below(2) == 0) {
      ASSERT_THAT(Apply(*store, step + 1, random_keys()), IsOk());
      if (rng.Below(2) == 0) Copy(*store, *to, since);
      ASSERT_THAT(store->UndoTo(step), IsOk());
    }
    Copy(*store, *to, since);
    to->SetApplied(step, 0);
    store = to;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RowMovesTest, testing::Range(1, 9));

}  // namespace
}  // namespace medley::worker::row_moves_test
