// Tests a RowStore whose rows are mostly on the disk against one in memory: the same calls give the same bits.
#include "worker/ps/row_tiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/ps/client.h"
#include "worker/ps/parameter_server.h"
#include "worker/ps/row_store.h"
#include "worker/ps/sharding.h"

namespace medley::worker::row_tiers_test {
namespace {

using base::IsOk;
using base::StatusIs;
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 7;
constexpr int kTables = 2;
constexpr int64_t kRows = 1 << 20;

ParameterSpec Spec(int operation) {
  return {.operation = operation,
          .name = "table",
          .rows = kRows,
          .columns = 2 + operation,
          .sparse = true,
          .initializer = Initializer::kUniform,
          .scale = 0.1f};
}
std::vector<ParameterSpec> Specs() { return {Spec(0), Spec(1)}; }
size_t ColumnsOf(int table) { return static_cast<size_t>(2 + table); }

struct Batch {
  std::vector<uint64_t> keys[kTables];
  std::vector<float> gradients[kTables];
};

Batch RandomBatch(base::Rng& rng, uint64_t most) {
  Batch batch;
  for (int table = 0; table < kTables; ++table) {
    std::set<uint64_t> keys;
    for (uint64_t k = rng.Below(60); k > 0; --k) keys.insert(rng.Below(rng.Below(3) == 0 ? most : 1 + most / 8));
    batch.keys[table].assign(keys.begin(), keys.end());
    for (size_t i = 0; i < keys.size() * ColumnsOf(table); ++i) {
      batch.gradients[table].push_back(static_cast<float>(rng.Uniform(-1, 1)));
    }
  }
  return batch;
}

using Rows = std::map<std::pair<int, uint64_t>, std::vector<float>>;
// A key may have a row, and be one that is only counted, at the same time: emptied.
int PartOf(int table, size_t width) { return 2 * table + (width == kUseFloats ? 1 : 0); }

class RowTiersTest : public testing::Test {
 protected:
  RowTiersTest() : folder_(base::MakeTempDir("row-tiers").value()) {}
  ~RowTiersTest() override { base::RemoveTempDir(folder_); }

  // So few bytes that each table has the least number of hot rows.
  std::shared_ptr<RowStore> Tiered(const Optimizer& optimizer, RowTierOptions options = {}) {
    options.memory_bytes = options.memory_bytes == 0 ? 1 : options.memory_bytes;
    options.folder = folder_;
    auto store = RowStore::Make(Specs(), optimizer, kSeed, options);
    EXPECT_THAT(store.status(), IsOk());
    EXPECT_TRUE((*store)->HasTiers());
    return *store;
  }

  const std::filesystem::path folder_;
};

absl::Status Apply(RowStore& store, int64_t step, const Batch& batch, int shard = 0, int shards = 1) {
  Batch part;
  std::vector<GradientView> views;
  for (int table = 0; table < kTables; ++table) {
    const size_t columns = ColumnsOf(table);
    for (size_t k = 0; k < batch.keys[table].size(); ++k) {
      if (ShardOf(table, batch.keys[table][k], shards) != shard) continue;
      part.keys[table].push_back(batch.keys[table][k]);
      const float* gradient = batch.gradients[table].data() + k * columns;
      part.gradients[table].insert(part.gradients[table].end(), gradient, gradient + columns);
    }
    views.push_back({table, part.keys[table], part.gradients[table]});
  }
  return store.Apply(step, views, 10);
}

std::vector<float> Read(RowStore& store, int table, const std::vector<uint64_t>& keys) {
  std::vector<float> rows(keys.size() * ColumnsOf(table));
  EXPECT_THAT(store.Read(table, keys, rows), IsOk());
  return rows;
}

// Which rows an export gives, the last of each key; in a snapshot there is one of each.
Rows Exported(RowStore& store, int64_t since, int shard = 0, int shards = 1) {
  Rows rows;
  EXPECT_THAT(store.Export(
                  since, [&](int table, uint64_t key) { return ShardOf(table, key, shards) == shard; },
                  [&](const RowPiece& piece) {
                    for (size_t k = 0; k < piece.keys.size(); ++k) {
                      const size_t width = piece.values.size() / piece.keys.size();
                      const float* row = piece.values.data() + k * width;
                      rows[{PartOf(piece.table, width), piece.keys[k]}].assign(row, row + width);
                    }
                    return absl::OkStatus();
                  }),
              IsOk());
  return rows;
}

// Without rows that an undo has emptied, and counts of keys that have rows: nobody reads them, and which of them are
// left depends on whose memory new rows have taken.
Rows Meaning(const Rows& rows, bool counts) {
  Rows kept;
  const auto is_known = [&](const std::vector<float>& row) {
    return !counts || UseOf(std::span<const float>(row).last<kUseFloats>()).sightings > 0;
  };
  for (const auto& [key, row] : rows) {
    const auto whole = rows.find({key.first - 1, key.second});
    const bool counted = counts && row.size() == kUseFloats && whole != rows.end() && is_known(whole->second);
    if (is_known(row) && !counted) kept[key] = row;
  }
  return kept;
}

// The first difference; empty: there is none.
std::string Difference(const Rows& of_a, const Rows& of_b, bool counts) {
  const Rows a = Meaning(of_a, counts), b = Meaning(of_b, counts);
  const auto text = [](const Rows& rows, const auto& key) {
    const auto row = rows.find(key);
    return row == rows.end() ? std::string("no row") : testing::PrintToString(row->second);
  };
  for (const Rows* rows : {&a, &b}) {
    for (const auto& [key, row] : *rows) {
      const std::string in_a = text(a, key), in_b = text(b, key);
      if (in_a != in_b) return testing::PrintToString(key) + ": " + in_a + " and " + in_b;
    }
  }
  return "";
}

Rows Saved(
    RowStore& store, RowSnapshot& snapshot, const std::function<void()>& between = [] {}) {
  Rows rows;
  EXPECT_THAT(store.ExportSnapshot(snapshot,
                                   [&](const RowPiece& piece) {
                                     for (size_t k = 0; k < piece.keys.size(); ++k) {
                                       const size_t width = piece.values.size() / piece.keys.size();
                                       const float* row = piece.values.data() + k * width;
                                       auto& to = rows[{PartOf(piece.table, width), piece.keys[k]}];
                                       EXPECT_TRUE(to.empty()) << "key " << piece.keys[k] << " comes twice";
                                       to.assign(row, row + width);
                                     }
                                     between();
                                     return absl::OkStatus();
                                   }),
              IsOk());
  store.EndSnapshot(snapshot);
  return rows;
}

void Import(RowStore& store, const Rows& rows) {
  for (const auto& [of, row] : rows) ASSERT_THAT(store.Import(of.first / 2, {&of.second, 1}, row), IsOk());
}

Optimizer OptimizerWith(const char* name, const RowLifetime& lifetime = {}) {
  Optimizer optimizer = MakeOptimizer(name, 0.1).value();
  optimizer.lifetime = lifetime;
  return optimizer;
}

void ExpectEqualReads(RowStore& a, RowStore& b, uint64_t most) {
  std::vector<uint64_t> keys;
  for (uint64_t key = 0; key < most; ++key) keys.push_back(key);
  for (int table = 0; table < kTables; ++table) ASSERT_EQ(Read(a, table, keys), Read(b, table, keys)) << table;
}

// Random steps, of which some are undone and some are expected; reads of what was never used; moves to a new store with
// steps between the first and the last copy; checkpoints that are written while steps run; a server that is lost.
TEST_F(RowTiersTest, HasTheBitsOfAStoreInMemory) {
  int64_t loads = 0, ahead = 0, cold = 0;
  const std::vector<RowLifetime> lifetimes = {
      {}, {}, {.admit_after = 3}, {.evict_after = 5}, {.admit_after = 2, .evict_after = 7, .decay_steps = 8}};
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    const RowLifetime lifetime = lifetimes[seed % lifetimes.size()];
    const Optimizer optimizer = OptimizerWith(seed % 3 == 0 ? "sgd" : seed % 3 == 1 ? "adagrad" : "adam", lifetime);
    const uint64_t most = 200 + rng.Below(2000);
    auto memory = std::make_shared<RowStore>(Specs(), optimizer, kSeed);
    std::shared_ptr<RowStore> tiered = Tiered(optimizer);
    std::map<int64_t, Batch> pushes;
    Rows checkpoint;
    int64_t step = 0, checkpoint_step = 0;
    const auto train = [&] {
      Batch batch = RandomBatch(rng, most);
      ++step;
      for (int table = 0; table < kTables && rng.Below(2) == 0; ++table) tiered->Expect(table, batch.keys[table]);
      if (rng.Below(2) == 0) tiered->AwaitExpected();
      for (int table = 0; table < kTables; ++table) {
        ASSERT_EQ(Read(*tiered, table, batch.keys[table]), Read(*memory, table, batch.keys[table])) << step;
      }
      ASSERT_THAT(Apply(*memory, step, batch), IsOk());
      ASSERT_THAT(Apply(*tiered, step, batch), IsOk());
      if (rng.Below(5) == 0) {
        ASSERT_THAT(memory->UndoTo(step - 1), IsOk());
        ASSERT_THAT(tiered->UndoTo(step - 1), IsOk());
        if (rng.Below(2) == 0) {
          ASSERT_NO_FATAL_FAILURE(ExpectEqualReads(*tiered, *memory, most));
        }
        batch = RandomBatch(rng, most);
        ASSERT_THAT(Apply(*memory, step, batch), IsOk());
        ASSERT_THAT(Apply(*tiered, step, batch), IsOk());
      }
      pushes[step] = std::move(batch);
    };
    for (int turn = 0; turn < 12; ++turn) {
      for (uint64_t i = rng.Below(15); i > 0; --i) ASSERT_NO_FATAL_FAILURE(train());
      ASSERT_NO_FATAL_FAILURE(ExpectEqualReads(*tiered, *memory, most));
      ASSERT_EQ(Difference(Exported(*tiered, 0), Exported(*memory, 0), lifetime.Counts()), "");
      const int64_t since = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(step) + 1));
      if (since > 0 && !lifetime.Counts()) {  // else a store in memory gives up emptied keys earlier
        ASSERT_EQ(Difference(Exported(*tiered, since, 0, 2), Exported(*memory, since, 0, 2), false), "") << since;
      }
      switch (turn % 3) {
        case 0: {  // a checkpoint
          const auto of_tiered = tiered->TakeSnapshot(), of_memory = memory->TakeSnapshot();
          checkpoint_step = step;
          for (uint64_t i = rng.Below(4); i > 0; --i) ASSERT_NO_FATAL_FAILURE(train());
          checkpoint = Saved(*memory, *of_memory);
          ASSERT_EQ(Difference(Saved(*tiered, *of_tiered, [&] { train(); }), checkpoint, lifetime.Counts()), "");
          ASSERT_EQ(tiered->AppliedStep(), memory->AppliedStep());
          break;
        }
        case 1: {  // the server is lost, and another one gets its rows and the pushes since
          tiered = Tiered(optimizer);
          memory = std::make_shared<RowStore>(Specs(), optimizer, kSeed);
          for (const auto& store : {tiered, memory}) {
            Import(*store, checkpoint);
            store->SetApplied(checkpoint_step, checkpoint_step * 10);
            for (int64_t s = checkpoint_step + 1; s <= step; ++s) ASSERT_THAT(Apply(*store, s, pushes[s]), IsOk());
          }
          break;
        }
        default: {  // a move
          const auto next = Tiered(optimizer);
          const auto next_memory = std::make_shared<RowStore>(Specs(), optimizer, kSeed);
          Import(*next, Exported(*tiered, 0));
          Import(*next_memory, Exported(*memory, 0));
          const int64_t from = std::max<int64_t>(0, step - 1);
          for (uint64_t i = rng.Below(4); i > 0; --i) ASSERT_NO_FATAL_FAILURE(train());
          Import(*next, Exported(*tiered, from));
          Import(*next_memory, Exported(*memory, from));
          for (const auto& store : {next, next_memory}) store->SetApplied(step, step * 10);
          const RowTierCounts counts = *tiered->TierCounts();
          loads += counts.loads;
          ahead += counts.ahead;
          cold += counts.cold;
          tiered = next;
          memory = next_memory;
        }
      }
      ASSERT_NO_FATAL_FAILURE(ExpectEqualReads(*tiered, *memory, most));
    }
  }
  std::printf("%lld loads, %lld ahead, %lld cold rows\n", static_cast<long long>(loads), static_cast<long long>(ahead),
              static_cast<long long>(cold));
  EXPECT_GT(loads, 5000);
  EXPECT_GT(ahead, 100);
  EXPECT_GT(cold, 2000);
}

// An export that steps, pulls and moves of rows run beside has each row, as of its first step or later.
TEST_F(RowTiersTest, AnExportBesideStepsMissesNoRow) {
  const Optimizer optimizer = OptimizerWith("adagrad");
  const auto tiered = Tiered(optimizer), copy = Tiered(optimizer);
  const auto memory = std::make_shared<RowStore>(Specs(), optimizer, kSeed);
  base::Rng rng(11);
  int64_t step = 0;
  const auto train = [&] {
    const Batch batch = RandomBatch(rng, 100000);
    ++step;
    ASSERT_THAT(Apply(*memory, step, batch), IsOk());
    ASSERT_THAT(Apply(*tiered, step, batch), IsOk());
  };
  for (int i = 0; i < 1000; ++i) train();
  int64_t first = step, pieces = 0;
  ASSERT_THAT(tiered->Export(
                  0, [](int, uint64_t) { return true; },
                  [&](const RowPiece& piece) {
                    first = std::min(first, piece.at_step);
                    ++pieces;
                    for (int i = 0; i < 30; ++i) train();
                    return piece.keys.empty() ? absl::OkStatus() : copy->Import(piece.table, piece.keys, piece.values);
                  }),
              IsOk());
  Import(*copy, Exported(*tiered, first - 1));
  copy->SetApplied(step, step * 10);
  EXPECT_GE(pieces, 4) << "two of hot rows and two of cold ones";
  EXPECT_EQ(Exported(*copy, 0), Exported(*memory, 0));
}

TEST_F(RowTiersTest, RowsInMemoryAreWithinTheBudget) {
  const Optimizer optimizer = OptimizerWith("adagrad");
  constexpr int64_t kBudget = int64_t{1} << 20;
  const auto store = Tiered(optimizer, {.memory_bytes = kBudget});
  base::Rng rng(2);
  for (int64_t step = 1; step <= 1200; ++step) ASSERT_THAT(Apply(*store, step, RandomBatch(rng, kRows)), IsOk());
  const RowTierCounts counts = *store->TierCounts();
  EXPECT_EQ(store->Rows(), counts.hot + counts.cold);
  EXPECT_LT(counts.hot * (16 + 12 + 4 * 4), kBudget);
  EXPECT_GT(counts.cold, counts.hot) << counts.hot;
  const auto in_memory = std::make_shared<RowStore>(Specs(), optimizer, kSeed);
  rng = base::Rng(2);
  for (int64_t step = 1; step <= 1200; ++step) ASSERT_THAT(Apply(*in_memory, step, RandomBatch(rng, kRows)), IsOk());
  EXPECT_EQ(store->Rows(), in_memory->Rows());
}

// What is used often stays in memory, so a skewed use finds more rows there than their share.
TEST_F(RowTiersTest, RowsThatAreUsedOftenStayHot) {
  const auto store = Tiered(OptimizerWith("sgd"));  // 64 hot rows a table
  const std::vector<uint64_t> often = {1, 2, 3, 4, 5, 6, 7, 8};
  int64_t step = 0;
  const auto use = [&](std::vector<uint64_t> keys) {
    Read(*store, 0, keys);
    const std::vector<float> gradients(keys.size() * ColumnsOf(0), 0.5F);
    const GradientView view{0, keys, gradients};
    ASSERT_THAT(store->Apply(++step, {&view, 1}, 1), IsOk());
  };
  for (int i = 0; i < 5; ++i) use(often);
  for (uint64_t i = 0; i < 500; ++i) {
    use({100 + 4 * i, 101 + 4 * i});
    if (i % 3 == 0) use(often);
  }
  EXPECT_EQ(store->TierCounts()->loads, 0) << "a row that is used often had become cold";
  use({1100, 1101, 1104});
  EXPECT_EQ(store->TierCounts()->loads, 3);
}

TEST_F(RowTiersTest, AStoreThatFitsHasNoTiers) {
  const auto store = RowStore::Make(Specs(), OptimizerWith("adam"), kSeed,
                                    {.memory_bytes = int64_t{1} << 30, .folder = folder_ / "unused"});
  ASSERT_THAT(store.status(), IsOk());
  EXPECT_FALSE((*store)->HasTiers());
  EXPECT_FALSE((*store)->TierCounts());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "unused"));
}

// While the disk is full rows stay in memory, and no bit is lost.
TEST_F(RowTiersTest, WithAFullDiskRowsStayInMemory) {
  const Optimizer optimizer = OptimizerWith("adagrad");
  const auto store = Tiered(optimizer, {.most_disk_bytes = 64 << 10});
  const auto memory = std::make_shared<RowStore>(Specs(), optimizer, kSeed);
  base::Rng rng(4);
  for (int64_t step = 1; step <= 400; ++step) {
    const Batch batch = RandomBatch(rng, 5000);
    ASSERT_THAT(Apply(*memory, step, batch), IsOk());
    ASSERT_THAT(Apply(*store, step, batch), IsOk());
  }
  ExpectEqualReads(*store, *memory, 5000);
  EXPECT_EQ(Exported(*store, 0), Exported(*memory, 0));
  const auto snapshot = store->TakeSnapshot(), expected = memory->TakeSnapshot();
  EXPECT_EQ(Saved(*store, *snapshot), Saved(*memory, *expected));
  EXPECT_GT(store->TierCounts()->hot, 1000) << "of which 128 would be hot";
}

// The disk becomes full while rows leave memory, and has room again later. A limit for the size of files fails as
// a full disk does.
TEST_F(RowTiersTest, WithADiskThatIsFullForAWhileNoBitIsLost) {
  signal(SIGXFSZ, SIG_IGN);
  const Optimizer optimizer = OptimizerWith("adagrad");
  const auto store = Tiered(optimizer);
  const auto memory = std::make_shared<RowStore>(Specs(), optimizer, kSeed);
  base::Rng rng(14);
  int64_t step = 0;
  const auto train = [&](int64_t steps) {
    for (const int64_t end = step + steps; step < end;) {
      const Batch batch = RandomBatch(rng, 20000);
      ++step;
      ASSERT_THAT(Apply(*memory, step, batch), IsOk());
      ASSERT_THAT(Apply(*store, step, batch), IsOk());
      ASSERT_EQ(Read(*store, 1, batch.keys[1]), Read(*memory, 1, batch.keys[1])) << step;
    }
  };
  train(300);
  const int64_t hot = store->TierCounts()->hot;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit = {rlim_t{150'000}, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  train(300);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  const RowTierCounts full = *store->TierCounts();
  EXPECT_GT(full.hot, hot + 1000) << "rows stay in memory";
  train(300);
  EXPECT_GT(store->TierCounts()->cold, full.cold + 1000) << "rows leave memory again";
  ExpectEqualReads(*store, *memory, 20000);
  EXPECT_EQ(Exported(*store, 0), Exported(*memory, 0));
}

// What the process holds for a table of four times the budget: hot rows, the index and buffers of the cold ones. Pages
// of the index are pages of a file, which the system may take back; they count here all the same. Those of the log do
// not: the system keeps as many as it likes, and did so before they were mapped too.
TEST_F(RowTiersTest, WhatIsResidentIsWithinTheBudgetAndAQuarter) {
  const auto resident = [] {
    std::ifstream mappings("/proc/self/smaps");
    int64_t kilobytes = 0;
    bool counts = true;
    for (std::string line; std::getline(mappings, line);) {
      if (line.find(':') == std::string::npos || line.find('-') < line.find(' ')) counts = !line.ends_with(".rows");
      if (counts && line.starts_with("Rss:")) kilobytes += std::stoll(line.substr(4));
    }
    return 1024 * kilobytes;
  };
  for (const int64_t budget : {int64_t{8} << 20, int64_t{32} << 20}) {
    constexpr int kColumns = 16;
    constexpr int64_t kBytesInMemory = 16 + 2 * kColumns * 4 + 12;
    ParameterSpec spec = Spec(0);
    spec.rows = 4 * budget / kBytesInMemory;
    spec.columns = kColumns;
    std::vector<uint64_t> keys(4096);
    const std::vector<float> gradients(keys.size() * kColumns, 0.5F);
    std::vector<float> rows(gradients.size());
    const int64_t before = resident();
    auto store = RowStore::Make({spec}, OptimizerWith("adagrad"), kSeed, {.memory_bytes = budget, .folder = folder_});
    ASSERT_THAT(store.status(), IsOk());
    int64_t step = 0;
    const auto train = [&] {
      const GradientView view{0, keys, gradients};
      ASSERT_THAT((*store)->Read(0, keys, rows), IsOk());
      ASSERT_THAT((*store)->Apply(++step, {&view, 1}, 1), IsOk());
    };
    for (uint64_t first = 0; first + keys.size() <= static_cast<uint64_t>(spec.rows); first += keys.size()) {
      for (size_t k = 0; k < keys.size(); ++k) keys[k] = first + k;
      train();
    }
    base::Rng rng(15);
    for (int i = 0; i < 100; ++i) {
      std::set<uint64_t> some;
      while (some.size() < keys.size()) some.insert(rng.Below(static_cast<uint64_t>(spec.rows)));
      keys.assign(some.begin(), some.end());
      train();
    }
    const int64_t grown = resident() - before;
    std::printf("budget %.0f MiB: %.2f MiB more are resident\n", static_cast<double>(budget) / (1 << 20),
                static_cast<double>(grown) / (1 << 20));
    EXPECT_GT((*store)->TierCounts()->cold, 2 * (*store)->TierCounts()->hot);
    EXPECT_LE(grown, budget * 5 / 4);
  }
}

TEST_F(RowTiersTest, ADamagedRowEndsTheStoreWithASentence) {
  std::vector<absl::Status> failures;
  const auto store =
      Tiered(OptimizerWith("adagrad"), {.failed = [&](const absl::Status& status) { failures.push_back(status); }});
  base::Rng rng(6);
  for (int64_t step = 1; step <= 1000; ++step) ASSERT_THAT(Apply(*store, step, RandomBatch(rng, 100000)), IsOk());
  ASSERT_THAT(store->FlushTiers(), IsOk());
  int damaged = 0;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) files.push_back(entry.path());
  for (const std::filesystem::path& path : files) {
    if (path.extension() != ".rows") continue;
    const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (int64_t at = 700; at < size * 3 / 4; at += 1500) {
      file.seekg(at);
      const char byte = static_cast<char>(file.get());
      file.seekp(at);
      file.put(static_cast<char>(byte ^ 1));
      ++damaged;
    }
  }
  ASSERT_GT(damaged, 50);
  absl::Status status;
  for (uint64_t key = 0; status.ok() && key < 100000; ++key) {
    std::vector<float> row(ColumnsOf(0));
    status = store->Read(0, {&key, 1}, row);
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the disk has damaged them"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("its rows are rebuilt"));
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0], status);
  EXPECT_EQ(store->Apply(1001, {}, 1), status) << "what it has left is of no use";
}

TEST_F(RowTiersTest, PullsAheadAndStepsInTwoThreadsAgree) {
  const Optimizer optimizer = OptimizerWith("adagrad");
  const auto store = Tiered(optimizer);
  const auto memory = std::make_shared<RowStore>(Specs(), optimizer, kSeed);
  base::Rng rng(9);
  std::vector<Batch> batches;
  for (int i = 0; i < 600; ++i) batches.push_back(RandomBatch(rng, 3000));
  std::jthread expects([&] {
    for (int round = 0; round < 3; ++round) {
      for (const Batch& batch : batches) {
        store->Expect(0, batch.keys[0]);
        store->Expect(1, batch.keys[1]);
      }
      store->AwaitExpected();
    }
  });
  for (size_t i = 0; i < batches.size(); ++i) {
    ASSERT_THAT(Apply(*store, static_cast<int64_t>(i) + 1, batches[i]), IsOk());
    ASSERT_THAT(Apply(*memory, static_cast<int64_t>(i) + 1, batches[i]), IsOk());
  }
  expects.join();
  ExpectEqualReads(*store, *memory, 3000);
}

// A pull that waits for its step, in the trainer's process or on a server: its cold rows become hot meanwhile.
TEST_F(RowTiersTest, AWaitingPullReadsItsRowsAhead) {
  base::SystemClock clock;
  const auto store = Tiered(OptimizerWith("adagrad"));
  ParameterServer server("token", clock);
  auto generation = std::make_shared<ShardGeneration>(ShardGenerationOptions{.generation = 1}, store);
  ASSERT_THAT(generation->Allow(1000), IsOk());
  server.Install(generation);
  PsClient client({.generation = 1, .shards = {""}, .token = "token", .own = &server, .own_shard = 0}, clock);
  int64_t step = 0;
  const auto push = [&](const std::vector<uint64_t>& keys) {
    const std::vector<TableKeys> tables = {{0, static_cast<int>(ColumnsOf(0)), keys}};
    const std::vector<float> gradients(keys.size() * ColumnsOf(0), 0.5F);
    const std::span<const float> view(gradients);
    ASSERT_THAT(client.Push(++step, tables, {&view, 1}, 1, {}), IsOk());
  };
  for (uint64_t key = 0; key < 400; key += 4) push({key, key + 1, key + 2, key + 3});
  ASSERT_THAT(store->FlushTiers(), IsOk());  // rows that wait to be written need no reading
  const int64_t before = store->TierCounts()->ahead;
  const std::vector<TableKeys> next = {{0, static_cast<int>(ColumnsOf(0)), {1, 2, 5}}};
  std::vector<std::vector<float>> rows;
  absl::Status pulled;
  {
    const std::jthread puller([&] { pulled = client.Pull(step + 2, next, rows, {}); });
    const base::SteadyTime end = clock.Steady() + base::seconds(60);
    while (store->TierCounts()->ahead < before + 3 && clock.Steady() < end) std::this_thread::yield();
    EXPECT_EQ(store->TierCounts()->ahead, before + 3);
    push({399});
  }
  EXPECT_THAT(pulled, IsOk());
  EXPECT_EQ(rows[0], Read(*store, 0, next[0].keys));
  server.Retain(0, -1);
}

}  // namespace
}  // namespace medley::worker::row_tiers_test
