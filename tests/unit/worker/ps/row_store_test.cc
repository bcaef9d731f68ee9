// Tests RowStore.
#include "worker/ps/row_store.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <numeric>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "worker/params/initialize.h"
#include "worker/pipeline/local_tables.h"
#include "worker/ps/sharding.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;

constexpr int kTable = 3;
constexpr uint64_t kSeed = 7;

ParameterSpec Spec() {
  return {.operation = kTable,
          .name = "table",
          .rows = 1 << 20,
          .columns = 4,
          .sparse = true,
          .initializer = Initializer::kUniform,
          .scale = 0.1f};
}
Optimizer Adagrad() { return {.kind = OptimizerKind::kAdagrad, .learning_rate = 0.1f}; }
RowStore Store() { return RowStore({Spec()}, Adagrad(), kSeed); }

std::vector<float> Read(RowStore& store, const std::vector<uint64_t>& keys) {
  std::vector<float> rows(keys.size() * 4);
  EXPECT_THAT(store.Read(kTable, keys, rows), IsOk());
  return rows;
}

absl::Status Update(RowStore& store, int64_t step, const std::vector<uint64_t>& keys, float gradient) {
  const std::vector<float> values(keys.size() * 4, gradient);
  const GradientView view{kTable, keys, values};
  return store.Apply(step, std::span(&view, 1), 10);
}

TEST(RowStoreTest, NewRowsAreTheInitialisersWhateverTheOrder) {
  RowStore store = Store();
  std::vector<uint64_t> keys;
  for (uint64_t k = 0; k < 5000; ++k) keys.push_back(base::Mix64(k) % (1 << 20));
  const std::vector<float> rows = Read(store, keys);
  for (size_t k = 0; k < keys.size(); ++k) {
    std::vector<float> expected(4);
    InitializeRow(Spec(), kSeed, static_cast<int64_t>(keys[k]), expected);
    for (size_t c = 0; c < 4; ++c) ASSERT_EQ(rows[k * 4 + c], expected[c]);
  }
}

// An evaluation reads rows of keys that no step has used. They would stay, and be in every checkpoint.
TEST(RowStoreTest, ReadingCreatesNoRows) {
  RowStore store = Store(), other = Store();
  const std::vector<float> initial = Read(store, {1, 2, 3});
  EXPECT_EQ(store.Rows(), 0);
  ASSERT_THAT(Update(store, 1, {2}, 0.5f), IsOk());
  EXPECT_EQ(store.Rows(), 1);
  const std::vector<float> after = Read(store, {1, 2, 3});
  EXPECT_EQ(store.Rows(), 1);
  EXPECT_TRUE(std::equal(initial.begin(), initial.begin() + 4, after.begin()));
  EXPECT_TRUE(std::equal(initial.begin() + 8, initial.end(), after.begin() + 8));
  ASSERT_THAT(Update(other, 1, {2}, 0.5f), IsOk());
  EXPECT_EQ(Read(other, {1, 2, 3}), after) << "a read changes no update";
}

TEST(RowStoreTest, AReadNeedsRoomForItsRows) {
  RowStore store = Store();
  std::vector<float> rows(7);
  EXPECT_THAT(store.Read(kTable, std::vector<uint64_t>{1, 2}, rows), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store.Read(kTable + 1, std::vector<uint64_t>{1}, rows), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(store.ReadFloats(kTable, 2).value(), 8U);
  EXPECT_THAT(store.ReadFloats(kTable + 1, 2), StatusIs(absl::StatusCode::kNotFound));
}

// Keys in any order, several times, and from several trainers: as a loop over them would do it.
TEST(RowStoreTest, GradientsOfAKeyAreSummedInTheOrderOfThePushes) {
  base::Rng rng(5);
  RowStore store = Store();
  std::map<uint64_t, std::vector<float>> weights, state;
  for (int64_t step = 1; step <= 20; ++step) {
    std::vector<std::vector<uint64_t>> keys(1 + rng.Below(3));
    std::vector<std::vector<float>> values(keys.size());
    std::vector<GradientView> views;
    std::map<uint64_t, std::vector<float>> sums;
    for (size_t v = 0; v < keys.size(); ++v) {
      for (uint64_t k = rng.Below(200); k > 0; --k) {
        keys[v].push_back(rng.Below(300));
        std::vector<float>& sum = sums[keys[v].back()];
        const bool first = sum.empty();
        sum.resize(4);
        for (float& s : sum) {
          values[v].push_back(static_cast<float>(rng.Uniform(-1, 1)));
          s = first ? values[v].back() : s + values[v].back();
        }
      }
      views.push_back({kTable, keys[v], values[v]});
    }
    ASSERT_THAT(store.Apply(step, views, 1), IsOk());
    for (const auto& [key, sum] : sums) {
      if (weights[key].empty()) {
        weights[key].resize(4);
        InitializeRow(Spec(), kSeed, static_cast<int64_t>(key), weights[key]);
        state[key].resize(4);
      }
      Apply(Adagrad(), weights[key], state[key], sum);
    }
  }
  for (const auto& [key, expected] : weights) ASSERT_EQ(Read(store, {key}), expected) << key;
  EXPECT_EQ(store.Rows(), static_cast<int64_t>(weights.size()));
}

// Rows of SGD have no state. Older checkpoints have one as wide as the weights.
TEST(RowStoreTest, RowsOfSgdAreOnlyWeights) {
  const Optimizer sgd{.kind = OptimizerKind::kSgd, .learning_rate = 1};
  RowStore store({Spec()}, sgd, kSeed);
  const std::vector<uint64_t> keys = {7, 8};
  ASSERT_THAT(store.Import(kTable, keys, std::vector<float>{1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 7, 8, 0, 0, 0, 0}), IsOk());
  EXPECT_EQ(Read(store, keys), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  ASSERT_THAT(store.Import(kTable, keys, std::vector<float>{8, 7, 6, 5, 4, 3, 2, 1}), IsOk());
  EXPECT_EQ(Read(store, keys), (std::vector<float>{8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_THAT(store.Import(kTable, keys, std::vector<float>(24)), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store.Import(kTable, keys, std::vector<float>(9)), StatusIs(absl::StatusCode::kInvalidArgument));
  size_t floats = 0;
  ASSERT_THAT(store.Export(
                  0, [](int, uint64_t) { return true; },
                  [&](const RowPiece& piece) {
                    floats += piece.values.size();
                    return absl::OkStatus();
                  }),
              IsOk());
  EXPECT_EQ(floats, 8U);
}

// The rate belongs to the step, not to the number of updates that the shard has seen.
TEST(RowStoreTest, AnUpdateThatIsRepeatedHasTheSameRate) {
  Optimizer optimizer{.kind = OptimizerKind::kSgd, .learning_rate = 1};
  optimizer.schedule = {.curve = RateCurve::kStep, .every_steps = 1, .factor = 0.5};
  RowStore store({Spec()}, optimizer, kSeed);
  const float before = Read(store, {5})[0];
  ASSERT_THAT(Update(store, 1, {5}, 1), IsOk());
  ASSERT_THAT(Update(store, 2, {5}, 1), IsOk());
  EXPECT_FLOAT_EQ(Read(store, {5})[0], before - 1.5F);
  ASSERT_THAT(store.UndoTo(1), IsOk());
  ASSERT_THAT(Update(store, 2, {5}, 1), IsOk());
  EXPECT_FLOAT_EQ(Read(store, {5})[0], before - 1.5F);
  ASSERT_THAT(Update(store, 3, {5}, 1), IsOk());
  EXPECT_FLOAT_EQ(Read(store, {5})[0], before - 1.75F);
}

// The bias correction belongs to the step, and a row has two moments: also after an undo and a move to another shard.
void ExpectTheBitsOfLocalTables(const Optimizer& adam) {
  ParameterSpec spec = Spec();
  spec.rows = 40;
  std::deque<RowStore> shards;
  RowStore* store = &shards.emplace_back(std::vector{spec}, adam, kSeed);
  LocalTables tables({spec}, adam, kSeed);
  const auto update = [&](int64_t step) {
    std::vector<uint64_t> keys;
    std::vector<float> gradient;
    for (uint64_t key = 0; key < 40; ++key) {
      if ((key + static_cast<uint64_t>(step)) % 3 != 0) continue;
      keys.push_back(key);
      for (int c = 0; c < 4; ++c) gradient.push_back(0.1F * static_cast<float>((step * 7 + c) % 5 - 2));
    }
    const GradientView view{kTable, keys, gradient};
    EXPECT_THAT(store->Apply(step, std::span(&view, 1), 10), IsOk());
    const std::vector<TableKeys> pushed = {{kTable, 4, keys}};
    const std::vector<std::span<const float>> gradients = {gradient};
    EXPECT_THAT(tables.Push(step, pushed, gradients, 10, {}), IsOk());
  };
  std::vector<uint64_t> all(40);
  std::iota(all.begin(), all.end(), 0);
  const auto expect_equal = [&](int64_t step) {
    std::vector<std::vector<float>> rows;
    const std::vector<TableKeys> wanted = {{kTable, 4, all}};
    EXPECT_THAT(tables.Pull(step + 1, wanted, rows, {}), IsOk());
    EXPECT_EQ(Read(*store, all), rows.at(0)) << step;
  };
  for (int64_t step = 1; step <= 10; ++step) update(step);
  expect_equal(10);
  const std::vector<float> ten = Read(*store, all);
  ASSERT_THAT(store->UndoTo(9), IsOk());
  ASSERT_THAT(tables.UndoTo(9), IsOk());
  EXPECT_NE(Read(*store, all), ten);
  expect_equal(9);
  update(10);
  EXPECT_EQ(Read(*store, all), ten);
  RowStore& other = shards.emplace_back(std::vector{spec}, adam, kSeed);
  ASSERT_THAT(store->Export(
                  0, [](int, uint64_t) { return true; },
                  [&](const RowPiece& piece) { return other.Import(kTable, piece.keys, piece.values); }),
              IsOk());
  other.SetApplied(10, 100);
  store = &other;
  for (int64_t step = 11; step <= 20; ++step) update(step);
  expect_equal(20);
}

TEST(RowStoreTest, AdamGivesTheBitsOfLocalTables) { ExpectTheBitsOfLocalTables(MakeOptimizer("adam", 0.01).value()); }

TEST(RowStoreTest, FtrlGivesTheBitsOfLocalTables) {
  Optimizer ftrl = MakeOptimizer("ftrl", 0.1).value();
  ExpectTheBitsOfLocalTables(ftrl);
  ftrl.l1 = 0.02F;
  ftrl.l2 = 0.5F;
  ExpectTheBitsOfLocalTables(ftrl);
}

TEST(RowStoreTest, DecayGivesTheBitsOfLocalTables) {
  for (const char* name : {"sgd", "adagrad", "adam", "adamw", "ftrl"}) {
    SCOPED_TRACE(name);
    Optimizer optimizer = MakeOptimizer(name, 0.01).value();
    optimizer.weight_decay = 0.5F;
    ExpectTheBitsOfLocalTables(optimizer);
    optimizer.row_decay = 0.25F;
    ExpectTheBitsOfLocalTables(optimizer);
  }
}

// By hand: w' = w (1 - rate x decay) - rate x gradient in the steps that use the row, also when its gradient is 0.
TEST(RowStoreTest, RowsDecayInTheStepsThatUseThem) {
  Optimizer optimizer{.kind = OptimizerKind::kSgd, .learning_rate = 0.5F, .weight_decay = 0.9F};
  optimizer.row_decay = 0.2F;
  RowStore store({Spec()}, optimizer, kSeed);
  const float used = Read(store, {5})[0], other = Read(store, {6})[0];
  ASSERT_THAT(Update(store, 1, {5}, 0), IsOk());
  EXPECT_FLOAT_EQ(Read(store, {5})[0], used * 0.9F);
  EXPECT_EQ(Read(store, {6})[0], other) << "no step used it";
  ASSERT_THAT(Update(store, 2, {6}, 1), IsOk());
  EXPECT_FLOAT_EQ(Read(store, {5})[0], used * 0.9F);
  EXPECT_FLOAT_EQ(Read(store, {6})[0], other * 0.9F - 0.5F);
  ASSERT_THAT(store.UndoTo(1), IsOk());
  EXPECT_EQ(Read(store, {6})[0], other);
}

TEST(RowStoreTest, AnUpdateIsTheOptimizersAndIsUndoneExactlyOnce) {
  RowStore store = Store();
  const std::vector<uint64_t> keys{5, 9, 1000};
  const std::vector<float> before = Read(store, keys);
  ASSERT_THAT(Update(store, 1, keys, 0.5f), IsOk());
  const std::vector<float> once = Read(store, keys);
  std::vector<float> weights = before, state(12), gradient(12, 0.5f);
  Apply(Adagrad(), weights, state, gradient);
  EXPECT_EQ(once, weights);
  ASSERT_THAT(Update(store, 2, {9, 77}, -1.0f), IsOk());
  EXPECT_EQ(store.StateSamples(), 20);
  ASSERT_THAT(store.UndoTo(1), IsOk());
  EXPECT_EQ(Read(store, keys), once);
  EXPECT_EQ(store.AppliedStep(), 1);
  EXPECT_EQ(store.StateSamples(), 10);
  EXPECT_THAT(store.UndoTo(0), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(Update(store, 2, {9, 77}, -1.0f), IsOk());
}

TEST(RowStoreTest, WithoutUndoNoUpdateIsUndone) {
  RowStore store = Store(), other = Store();
  ASSERT_THAT(Update(store, 1, {5, 9}, 0.5f), IsOk());
  EXPECT_EQ(store.UndoLimit(), 0);
  store.SetKeepsUndo(false);
  EXPECT_EQ(store.UndoLimit(), 1);
  ASSERT_THAT(Update(store, 2, {9, 77}, -1.0f), IsOk());
  EXPECT_EQ(store.UndoLimit(), 2);
  EXPECT_THAT(store.UndoTo(1), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(store.UndoTo(2), IsOk());
  ASSERT_THAT(Update(other, 1, {5, 9}, 0.5f), IsOk());
  ASSERT_THAT(Update(other, 2, {9, 77}, -1.0f), IsOk());
  EXPECT_EQ(Read(store, {5, 9, 77}), Read(other, {5, 9, 77}));
  store.SetKeepsUndo(true);
  ASSERT_THAT(Update(store, 3, {5}, 1.0f), IsOk());
  ASSERT_THAT(store.UndoTo(2), IsOk());
  EXPECT_EQ(Read(store, {5, 9, 77}), Read(other, {5, 9, 77}));
}

TEST(RowStoreTest, WrongGradientsChangeNothing) {
  RowStore store = Store();
  const std::vector<uint64_t> keys{1};
  const std::vector<float> short_row(3);
  const GradientView view{kTable, keys, short_row};
  EXPECT_THAT(store.Apply(1, std::span(&view, 1), 1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Update(store, 3, keys, 1.0f), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(store.AppliedStep(), 0);
}

TEST(RowStoreTest, RowsBeyondTheTableAreRefused) {
  RowStore store = Store();
  std::vector<float> rows(8);
  const std::vector<uint64_t> keys = {1, 1 << 20};
  const std::vector<float> values(16);
  EXPECT_THAT(store.Read(kTable, keys, rows), StatusIs(absl::StatusCode::kInvalidArgument));
  const GradientView view{kTable, keys, std::span(values).first(8)};
  EXPECT_THAT(store.Apply(1, {&view, 1}, 1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store.Import(kTable, keys, values), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(store.AppliedStep(), 0);
}

// Moves rows from 1 shard to 3 shards while it trains, with an undone step between copy and switch.
TEST(RowStoreTest, CopyThenDeltaCarriesTheExactStateToAnotherMap) {
  RowStore source = Store();
  base::Rng rng(11);
  const auto random_keys = [&] {
    std::map<uint64_t, int> keys;
    for (int i = 0; i < 50; ++i) keys[rng.Below(300)] = 1;
    std::vector<uint64_t> sorted;
    for (const auto& [key, one] : keys) sorted.push_back(key);
    return sorted;
  };
  for (int64_t step = 1; step <= 10; ++step) ASSERT_THAT(Update(source, step, random_keys(), 0.1f), IsOk());
  std::deque<RowStore> targets;
  std::vector<int64_t> since;
  const auto copy = [&](int shard, int64_t since_step) {
    int64_t first = -1;
    EXPECT_THAT(source.Export(
                    since_step, [&](int t, uint64_t k) { return ShardOf(t, k, 3) == shard; },
                    [&](const RowPiece& piece) {
                      if (first < 0) first = piece.at_step;
                      return targets[static_cast<size_t>(shard)].Import(kTable, piece.keys, piece.values);
                    }),
                IsOk());
    return first;
  };
  for (int shard = 0; shard < 3; ++shard) {
    targets.emplace_back(std::vector<ParameterSpec>{Spec()}, Adagrad(), kSeed);
    since.push_back(copy(shard, 0));
    ASSERT_THAT(Update(source, 11 + shard, random_keys(), 0.2f), IsOk());
  }
  ASSERT_THAT(source.UndoTo(12), IsOk());
  for (int shard = 0; shard < 3; ++shard) EXPECT_EQ(copy(shard, since[static_cast<size_t>(shard)] - 1), 12);
  for (uint64_t key = 0; key < 300; ++key) {
    const auto shard = static_cast<size_t>(ShardOf(kTable, key, 3));
    ASSERT_EQ(Read(targets[shard], {key}), Read(source, {key})) << key;
  }
}

// The pieces are messages: keys count, too, which are most of a row with one column.
TEST(RowStoreTest, PiecesHaveAtMostOneMebibyteAndCoverEveryRow) {
  constexpr uint64_t kRows = 300'000;
  for (const int columns : {1, 64}) {
    ParameterSpec spec = Spec();
    spec.columns = columns;
    RowStore store({spec}, Adagrad(), kSeed);
    std::vector<uint64_t> keys(columns == 1 ? kRows : kRows / 64);
    for (uint64_t key = 0; key < keys.size(); ++key) keys[key] = key;
    const std::vector<float> values(keys.size() * 2 * static_cast<size_t>(columns));
    ASSERT_THAT(store.Import(kTable, keys, values), IsOk());
    size_t rows = 0, pieces = 0;
    EXPECT_THAT(store.Export(
                    0, [](int, uint64_t) { return true; },
                    [&](const RowPiece& piece) {
                      const size_t bytes = piece.keys.size() * sizeof(uint64_t) + piece.values.size() * sizeof(float);
                      EXPECT_LE(bytes, size_t{1} << 20);
                      rows += piece.keys.size();
                      ++pieces;
                      return absl::OkStatus();
                    }),
                IsOk());
    EXPECT_EQ(rows, keys.size());
    EXPECT_GT(pieces, 2U);
  }
}

}  // namespace
}  // namespace medley::worker
