// Tests which keys of a RowStore have rows, against a loop over all keys and steps.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <numeric>
#include <set>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "worker/params/initialize.h"
#include "worker/ps/row_store.h"
#include "worker/ps/sharding.h"

namespace medley::worker::row_lifetime_store_test {
namespace {

using base::IsOk;
using base::StatusIs;

constexpr int kTable = 3;
constexpr uint64_t kSeed = 7;
constexpr size_t kColumns = 2;

ParameterSpec Spec(int64_t rows) {
  return {.operation = kTable,
          .name = "table",
          .rows = rows,
          .columns = kColumns,
          .sparse = true,
          .initializer = Initializer::kUniform,
          .scale = 0.1f};
}

Optimizer OptimizerWith(const RowLifetime& lifetime, const char* name = "ftrl") {
  Optimizer optimizer = MakeOptimizer(name, 0.1).value();
  optimizer.lifetime = lifetime;
  return optimizer;
}

// What a key is, said step by step: no row of bits, no row that is emptied later.
class Reference {
 public:
  explicit Reference(const Optimizer& optimizer) : optimizer_(optimizer) {}

  // Before the updates and the pulls of a step.
  void Begin(int64_t step) {
    const RowLifetime& lifetime = optimizer_.lifetime;
    for (auto it = keys_.begin(); it != keys_.end();) {
      Key& key = it->second;
      if (lifetime.decay_steps > 0 && step % lifetime.decay_steps == 0) key.sightings /= 2;
      const bool unseen = lifetime.evict_after > 0 && step - key.last > lifetime.evict_after;
      const bool ends = unseen || key.sightings == 0;
      lost_rows_ += ends && !key.weights.empty() ? 1 : 0;
      it = ends ? keys_.erase(it) : std::next(it);
    }
  }
  void Update(int64_t step, uint64_t id, std::span<const float> gradient) {
    Key& key = keys_[id];
    ++key.sightings;
    key.last = step;
    if (key.weights.empty() && key.sightings < optimizer_.lifetime.admit_after) return;
    if (key.weights.empty()) {
      key.weights = Initial(id);
      key.state.resize(kColumns * StateFloats(optimizer_.kind), optimizer_.initial_state);
    }
    Apply(optimizer_.AtStep(step), key.weights, key.state, gradient);
  }
  std::vector<float> Weights(uint64_t id) const {
    const auto key = keys_.find(id);
    return key == keys_.end() || key->second.weights.empty() ? Initial(id) : key->second.weights;
  }
  int lost_rows() const { return lost_rows_; }
  // Keys that have been seen too seldom for a row.
  auto waiting() const {
    return std::ranges::count_if(keys_, [](const auto& key) { return key.second.weights.empty(); });
  }

 private:
  static std::vector<float> Initial(uint64_t id) {
    std::vector<float> weights(kColumns);
    InitializeRow(Spec(1 << 20), kSeed, static_cast<int64_t>(id), weights);
    return weights;
  }
  struct Key {
    int64_t sightings = 0, last = 0;
    std::vector<float> weights, state;  // empty: no row
  };
  Optimizer optimizer_;
  std::map<uint64_t, Key> keys_;
  int lost_rows_ = 0;
};

struct Batch {
  std::vector<uint64_t> keys;
  std::vector<float> gradients;
};

Batch RandomBatch(base::Rng& rng, uint64_t most) {
  std::set<uint64_t> keys;
  for (uint64_t k = rng.Below(30); k > 0; --k) keys.insert(rng.Below(rng.Below(3) == 0 ? most : 1 + most / 8));
  Batch batch;
  batch.keys.assign(keys.begin(), keys.end());
  for (size_t i = 0; i < batch.keys.size() * kColumns; ++i) {
    batch.gradients.push_back(static_cast<float>(rng.Uniform(-1, 1)));
  }
  return batch;
}

// The part of a batch that belongs to a shard.
Batch PartOf(const Batch& batch, int shard, int shards) {
  Batch part;
  for (size_t k = 0; k < batch.keys.size(); ++k) {
    if (ShardOf(kTable, batch.keys[k], shards) != shard) continue;
    part.keys.push_back(batch.keys[k]);
    for (size_t c = 0; c < kColumns; ++c) part.gradients.push_back(batch.gradients[k * kColumns + c]);
  }
  return part;
}

class Shards {
 public:
  Shards(const Optimizer& optimizer, int count) : optimizer_(optimizer) {
    for (int s = 0; s < count; ++s) Add();
  }
  RowStore& Add() { return shards_.emplace_back(std::vector{Spec(1 << 20)}, optimizer_, kSeed); }
  int count() const { return static_cast<int>(shards_.size()); }
  RowStore& at(int shard) { return shards_[static_cast<size_t>(shard)]; }

  // From two trainers: each has a part of the batch, and some keys are in both.
  void Apply(int64_t step, const Batch& batch) {
    for (int s = 0; s < count(); ++s) {
      const Batch part = PartOf(batch, s, count());
      const std::vector<uint64_t> none;
      const std::vector<float> zeros(part.gradients.size(), 0.0F);
      const GradientView views[] = {{kTable, part.keys, part.gradients}, {kTable, part.keys, zeros}};
      ASSERT_THAT(at(s).Apply(step, views, 10), IsOk());
    }
  }
  void UndoTo(int64_t step) {
    for (RowStore& shard : shards_) ASSERT_THAT(shard.UndoTo(step), IsOk());
  }
  std::vector<float> Read(uint64_t key) {
    std::vector<float> weights(kColumns);
    EXPECT_THAT(at(ShardOf(kTable, key, count())).Read(kTable, {&key, 1}, weights), IsOk());
    return weights;
  }
  // Copies the keys of `shard` of `shards` to `to`; `since` 0: all.
  void CopyTo(RowStore& to, int64_t since, int shard, int shards) {
    for (RowStore& from : shards_) {
      ASSERT_THAT(from.Export(
                      since, [&](int table, uint64_t key) { return ShardOf(table, key, shards) == shard; },
                      [&](const RowPiece& piece) {
                        return piece.keys.empty() ? absl::OkStatus() : to.Import(piece.table, piece.keys, piece.values);
                      }),
                  IsOk());
    }
  }

 private:
  const Optimizer optimizer_;
  std::deque<RowStore> shards_;
};

std::vector<RowLifetime> Lifetimes() {
  return {{.admit_after = 3},
          {.evict_after = 5},
          {.decay_steps = 4},
          {.admit_after = 2, .evict_after = 7},
          {.admit_after = 3, .evict_after = 20, .decay_steps = 8}};
}

// Updates, undone ones, moves to other numbers of shards with steps between the first and the last copy, and
// checkpoints: after each the rows of all keys are those of the loop.
TEST(RowLifetimeStoreTest, HasTheRowsOfALoopOverAllKeys) {
  for (const RowLifetime& lifetime : Lifetimes()) {
    int lost_rows = 0;
    int64_t waiting = 0;
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE(seed);
      base::Rng rng(seed);
      const uint64_t most = 20 + rng.Below(200);
      const Optimizer optimizer = OptimizerWith(lifetime, seed % 2 == 0 ? "ftrl" : "adagrad");
      auto shards = std::make_unique<Shards>(optimizer, 1 + static_cast<int>(rng.Below(3)));
      Reference now(optimizer);
      now.Begin(1);
      const auto expect_equal = [&](int64_t step) {
        for (uint64_t key = 0; key < most; ++key) ASSERT_EQ(shards->Read(key), now.Weights(key)) << step << " " << key;
      };
      int64_t step = 0;
      const auto train = [&] {
        ++step;
        const Reference before = now;
        const auto update = [&] {
          const Batch batch = RandomBatch(rng, most);
          shards->Apply(step, batch);
          for (size_t k = 0; k < batch.keys.size(); ++k) {
            now.Update(step, batch.keys[k], std::span(batch.gradients).subspan(k * kColumns, kColumns));
          }
          now.Begin(step + 1);
        };
        update();
        if (rng.Below(4) != 0) return;
        shards->UndoTo(step - 1);
        now = before;
        expect_equal(step - 1);
        update();
      };
      for (int turn = 0; turn < 12; ++turn) {
        for (uint64_t i = rng.Below(12); i > 0; --i) train();
        ASSERT_NO_FATAL_FAILURE(expect_equal(step));
        const int count = 1 + static_cast<int>(rng.Below(3));
        auto next = std::make_unique<Shards>(optimizer, count);
        if (turn % 2 == 0) {
          for (int s = 0; s < count; ++s) shards->CopyTo(next->at(s), 0, s, count);
          const int64_t since = std::max<int64_t>(0, step - 1);
          for (uint64_t i = rng.Below(4); i > 0; --i) train();
          for (int s = 0; s < count; ++s) shards->CopyTo(next->at(s), since, s, count);
        } else {
          for (int from = 0; from < shards->count(); ++from) {
            const auto snapshot = shards->at(from).TakeSnapshot();
            const auto add = [&](const RowPiece& piece) -> absl::Status {
              const size_t width = piece.values.size() / piece.keys.size();
              for (size_t k = 0; k < piece.keys.size(); ++k) {
                RowStore& to = next->at(ShardOf(kTable, piece.keys[k], count));
                const absl::Status taken = to.Import(kTable, std::span(piece.keys).subspan(k, 1),
                                                     std::span(piece.values).subspan(k * width, width));
                if (!taken.ok()) return taken;
              }
              return absl::OkStatus();
            };
            ASSERT_THAT(shards->at(from).ExportSnapshot(*snapshot, add), IsOk());
            shards->at(from).EndSnapshot(*snapshot);
          }
        }
        for (int s = 0; s < count; ++s) next->at(s).SetApplied(step, step * 10);
        shards = std::move(next);
        ASSERT_NO_FATAL_FAILURE(expect_equal(step));
        waiting += now.waiting();
      }
      lost_rows += now.lost_rows();
    }
    std::printf("%lld keys that waited, %d rows that were lost\n", static_cast<long long>(waiting), lost_rows);
    EXPECT_EQ(waiting > 100, lifetime.admit_after > 1);
    EXPECT_EQ(lost_rows > 20, lifetime.evict_after > 0 || lifetime.decay_steps > 0);
  }
}

// A checkpoint is of its step, though training goes on while it is written, and uses no row again meanwhile.
TEST(RowLifetimeStoreTest, ASnapshotHasTheKeysOfItsStep) {
  const Optimizer optimizer = OptimizerWith({.admit_after = 2, .evict_after = 3});
  Shards shards(optimizer, 1), copy(optimizer, 1);
  base::Rng rng(5);
  for (int64_t step = 1; step <= 20; ++step) shards.Apply(step, RandomBatch(rng, 60));
  std::vector<std::vector<float>> expected;
  for (uint64_t key = 0; key < 60; ++key) expected.push_back(shards.Read(key));
  const auto snapshot = shards.at(0).TakeSnapshot();
  for (int64_t step = 21; step <= 30; ++step) shards.Apply(step, RandomBatch(rng, 500));
  ASSERT_THAT(
      shards.at(0).ExportSnapshot(
          *snapshot, [&](const RowPiece& piece) { return copy.at(0).Import(kTable, piece.keys, piece.values); }),
      IsOk());
  shards.at(0).EndSnapshot(*snapshot);
  copy.at(0).SetApplied(20, 200);
  for (uint64_t key = 0; key < 60; ++key) EXPECT_EQ(copy.Read(key), expected[key]) << key;
}

// Keys that never come again neither keep their rows nor their counts.
TEST(RowLifetimeStoreTest, MemoryFollowsTheKeysThatAreKnown) {
  for (const RowLifetime& lifetime : {RowLifetime{.evict_after = 10}, RowLifetime{.admit_after = 2, .evict_after = 10},
                                      RowLifetime{.admit_after = 2, .decay_steps = 5}}) {
    Shards shards(OptimizerWith(lifetime), 1);
    for (int64_t step = 1; step <= 3000; ++step) {
      Batch batch;
      for (uint64_t k = 0; k < 20; ++k) batch.keys.push_back((static_cast<uint64_t>(step) * 10 + k));  // each twice
      batch.gradients.resize(batch.keys.size() * kColumns, 0.5F);
      shards.Apply(step, batch);
    }
    EXPECT_LT(shards.at(0).Rows(), 1500) << "of 30,000 keys, of which the last 10 to 20 steps have 100 to 200";
  }
}

// A key that occurs once costs less than a row.
TEST(RowLifetimeStoreTest, KeysBelowTheThresholdHaveNoRow) {
  const Optimizer optimizer = OptimizerWith({.admit_after = 3});
  Shards shards(optimizer, 1);
  Batch batch{{4, 9}, {1, 1, 1, 1}};
  const std::vector<float> initial = shards.Read(4);
  for (int64_t step = 1; step <= 2; ++step) {
    shards.Apply(step, batch);
    EXPECT_EQ(shards.Read(4), initial) << "sighting " << step;
  }
  std::map<size_t, size_t> rows;  // by floats
  const auto count = [&](const RowPiece& piece) {
    if (!piece.keys.empty()) rows[piece.values.size() / piece.keys.size()] += piece.keys.size();
    return absl::OkStatus();
  };
  ASSERT_THAT(shards.at(0).Export(
                  0, [](int, uint64_t) { return true; }, count),
              IsOk());
  EXPECT_EQ(rows, (std::map<size_t, size_t>{{kUseFloats, 2}}));
  batch = {{4}, {1, 1}};
  shards.Apply(3, batch);
  EXPECT_NE(shards.Read(4), initial) << "the third sighting";
  rows.clear();
  ASSERT_THAT(shards.at(0).Export(
                  0, [](int, uint64_t) { return true; }, count),
              IsOk());
  EXPECT_EQ(rows, (std::map<size_t, size_t>{{kUseFloats, 1}, {kColumns * 3 + kUseFloats, 1}}));
}

// An evaluation is no sighting.
TEST(RowLifetimeStoreTest, AReadCountsAsNoSighting) {
  Shards shards(OptimizerWith({.admit_after = 2, .evict_after = 3}), 1);
  const Batch batch{{4}, {1, 1}};
  const std::vector<float> initial = shards.Read(4);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(shards.Read(4), initial);
  shards.Apply(1, batch);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(shards.Read(4), initial);
  shards.Apply(2, batch);
  const std::vector<float> trained = shards.Read(4);
  EXPECT_NE(trained, initial);
  const Batch other{{5}, {1, 1}};
  for (int64_t step = 3; step <= 5; ++step) {
    EXPECT_EQ(shards.Read(4), trained);
    shards.Apply(step, other);
  }
  EXPECT_EQ(shards.Read(4), initial) << "step 6 is the fourth without the key, whatever has read it";
}

TEST(RowLifetimeStoreTest, RowsOfAnotherLayoutAreRefused) {
  const std::vector<uint64_t> keys = {1};
  RowStore counting({Spec(10)}, OptimizerWith({.evict_after = 3}), kSeed), plain({Spec(10)}, OptimizerWith({}), kSeed);
  EXPECT_THAT(counting.Import(kTable, keys, std::vector<float>(6)), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(counting.Import(kTable, keys, std::vector<float>(8)), IsOk());
  EXPECT_THAT(counting.Import(kTable, keys, std::vector<float>(2)), StatusIs(absl::StatusCode::kInvalidArgument))
      << "all keys have rows";
  EXPECT_THAT(plain.Import(kTable, keys, std::vector<float>(8)), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(plain.Import(kTable, keys, std::vector<float>(2)), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace medley::worker::row_lifetime_store_test
