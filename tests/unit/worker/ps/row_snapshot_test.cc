// Tests that a snapshot has the rows of its moment, whatever happens to the store while it is read.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <vector>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "worker/ps/row_store.h"

namespace medley::worker::row_snapshot_test {
namespace {

using base::IsOk;
using base::StatusIs;

constexpr uint64_t kKeys = 40000;  // several pieces
constexpr size_t kColumns = 8;

ParameterSpec Spec(int operation) {
  return {.operation = operation,
          .name = "table",
          .rows = 1 << 20,
          .columns = kColumns,
          .sparse = true,
          .initializer = Initializer::kUniform,
          .scale = 0.1f};
}

std::vector<uint64_t> Keys(base::Rng& rng, size_t count) {
  std::map<uint64_t, bool> keys;
  while (keys.size() < count) keys[rng.Below(kKeys)] = true;
  std::vector<uint64_t> sorted;
  for (const auto& [key, unused] : keys) sorted.push_back(key);
  return sorted;
}

// Updates random rows of both tables; the same seed does the same.
void Update(RowStore& store, int64_t step, uint64_t seed) {
  base::Rng rng(seed + static_cast<uint64_t>(step));
  const std::vector<uint64_t> keys = Keys(rng, 3000);
  const std::vector<float> values(keys.size() * kColumns, static_cast<float>(rng.Uniform(-1, 1)));
  const std::vector<GradientView> views = {{0, keys, values}, {1, keys, values}};
  ASSERT_THAT(store.Apply(step, views, 10), IsOk());
}

struct Rows {
  std::vector<std::pair<int, std::vector<uint64_t>>> keys;  // by piece
  std::vector<std::vector<float>> values;
  bool operator==(const Rows&) const = default;
};

absl::Status Collect(RowStore& store, RowSnapshot& snapshot, Rows& rows, const std::function<void()>& between) {
  return store.ExportSnapshot(snapshot, [&](const RowPiece& piece) {
    EXPECT_EQ(piece.at_step, snapshot.step());
    rows.keys.emplace_back(piece.table, piece.keys);
    rows.values.push_back(piece.values);
    between();
    return absl::OkStatus();
  });
}

class RowSnapshotTest : public testing::Test {
 protected:
  RowSnapshotTest() : store_({Spec(0), Spec(1)}, {.kind = OptimizerKind::kAdagrad, .learning_rate = 0.1f}, 7) {
    for (int64_t step = 1; step <= 10; ++step) Update(store_, step, 1);
  }
  RowStore store_;
};

TEST_F(RowSnapshotTest, IsWhatAnExportAtItsStepWouldBe) {
  std::map<std::pair<int, uint64_t>, std::vector<float>> expected;
  ASSERT_THAT(store_.Export(
                  0, [](int, uint64_t) { return true; },
                  [&](const RowPiece& piece) {
                    for (size_t k = 0; k < piece.keys.size(); ++k) {
                      const float* row = piece.values.data() + k * 2 * kColumns;
                      expected[{piece.table, piece.keys[k]}] = std::vector<float>(row, row + 2 * kColumns);
                    }
                    return absl::OkStatus();
                  }),
              IsOk());
  const auto snapshot = store_.TakeSnapshot();
  EXPECT_EQ(snapshot->step(), 10);
  EXPECT_EQ(snapshot->state_samples(), 100);
  Update(store_, 11, 1);
  size_t rows = 0;
  ASSERT_THAT(store_.ExportSnapshot(
                  *snapshot,
                  [&](const RowPiece& piece) {
                    for (size_t k = 0; k < piece.keys.size(); ++k, ++rows) {
                      const float* row = piece.values.data() + k * 2 * kColumns;
                      EXPECT_EQ(std::vector<float>(row, row + 2 * kColumns), expected.at({piece.table, piece.keys[k]}));
                    }
                    return absl::OkStatus();
                  }),
              IsOk());
  EXPECT_EQ(rows, expected.size());
}

TEST_F(RowSnapshotTest, NothingThatHappensMeanwhileChangesIt) {
  Rows undisturbed;
  ASSERT_THAT(Collect(store_, *store_.TakeSnapshot(), undisturbed, [] {}), IsOk());
  ASSERT_GE(undisturbed.keys.size(), 4u);  // pieces
  Rows disturbed;
  const auto snapshot = store_.TakeSnapshot();
  int64_t step = 10;
  base::Rng rng(3);
  const auto disturb = [&] {
    Update(store_, ++step, 1);
    if (rng.Below(2) == 0) {
      ASSERT_THAT(store_.UndoTo(--step), IsOk());
    }
    const std::vector<uint64_t> created{kKeys + rng.Below(kKeys)};
    ASSERT_THAT(store_.Import(0, created, std::vector<float>(2 * kColumns, 3.0f)), IsOk());
    const std::vector<uint64_t> keys = Keys(rng, 10);
    ASSERT_THAT(store_.Import(1, keys, std::vector<float>(keys.size() * 2 * kColumns, 5.0f)), IsOk());
  };
  disturb();
  ASSERT_THAT(Collect(store_, *snapshot, disturbed, disturb), IsOk());
  EXPECT_TRUE(disturbed == undisturbed);
}

// A rollback below the step of the snapshot happens after a halt.
TEST_F(RowSnapshotTest, AnUndoBelowItsStepDoesNotChangeIt) {
  Rows before;
  ASSERT_THAT(Collect(store_, *store_.TakeSnapshot(), before, [] {}), IsOk());
  const auto snapshot = store_.TakeSnapshot();
  ASSERT_THAT(store_.UndoTo(9), IsOk());
  Rows after;
  ASSERT_THAT(Collect(store_, *snapshot, after, [] {}), IsOk());
  EXPECT_TRUE(after == before);
}

TEST_F(RowSnapshotTest, EndsWhenAskedAndWhenAnotherOneBegins) {
  const auto first = store_.TakeSnapshot();
  const auto second = store_.TakeSnapshot();
  Rows rows;
  EXPECT_THAT(Collect(store_, *first, rows, [] {}), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Collect(store_, *second, rows, [&] { store_.EndSnapshot(*second); }),
              StatusIs(absl::StatusCode::kAborted));
  Update(store_, 11, 1);
}

}  // namespace
}  // namespace medley::worker::row_snapshot_test
