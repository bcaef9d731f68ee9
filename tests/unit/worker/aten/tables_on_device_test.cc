// Where a block has its tables: as the plan says, or why not; what a profiler measures of each place; and how well a
// cache does what the data promise. On the test device. Not for the build with CUDA.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/pipeline/pipeline_harness.h"
#include "tests/unit/worker/zoo/zoo_jobs.h"
#include "worker/aten/make_block.h"
#include "worker/aten/resident_tables.h"
#include "worker/aten/row_slots.h"
#include "worker/aten/testing/tested_device.h"
#include "worker/device/testing/guarded_memory.h"
#include "worker/model/fit_graph.h"
#include "worker/params/optimizer_of.h"
#include "worker/pipeline/whole_tables.h"
#include "worker/profiler/tables_on_device.h"

namespace medley::worker::aten {
namespace {

using base::IsOk;
using model::TablePlace;
using ::testing::HasSubstr;

// Sets the memory of the device, for as long as it lives.
class WithMemory {
 public:
  explicit WithMemory(double bytes) : before_(device::GuardedMemory::OfProcess().total()) {
    device::GuardedMemory& memory = device::GuardedMemory::OfProcess();
    memory.SetTotal(static_cast<int64_t>(memory.used()) + static_cast<int64_t>(bytes));
  }
  ~WithMemory() { device::GuardedMemory::OfProcess().SetTotal(before_); }

 private:
  const int64_t before_;
};

struct Made {
  std::unique_ptr<BlockCompute> block;
  std::shared_ptr<WholeTables> tables;
  TableCounts counts;
};

// With so many bytes free when the tables are made, after the block's other parameters.
Made Make(const Graph& graph, const model::Tables& planned, double free) {
  const BlockSettings settings{
      .optimizer = *MakeOptimizer("adam", 0.01), .device = *OpenTestedDevice(), .tables = planned};
  Made made;
  made.block = *MakeBlock(graph, {0, static_cast<int>(graph.operations.size())}, settings);
  const WithMemory left(free);
  made.tables = *KeeperOf(*made.block)->MakeTables(settings.optimizer, settings.seed, 1);
  made.counts = KeeperOf(*made.block)->Counts();
  return made;
}

double TableBytes(const Graph& graph) {
  return ResidentTables::Bytes(graph.Parameters(/*sparse=*/true), *MakeOptimizer("adam", 0.01));
}

TEST(TablesOnDevice, ABlockHasThemWhereThePlanSays) {
  const Graph graph = *BuildGraph(testing::ZooJob("deepfm"));
  const double bytes = TableBytes(graph);
  const Made whole = Make(graph, {.place = TablePlace::kDevice}, 4 * bytes);
  EXPECT_EQ(whole.counts.place, TablePlace::kDevice);
  const auto share = static_cast<int64_t>(bytes / 10);
  const Made cached = Make(graph, {.place = TablePlace::kCache, .cache_bytes = share}, 4 * bytes);
  EXPECT_EQ(cached.counts.place, TablePlace::kCache);
  const Made host = Make(graph, {.place = TablePlace::kHost}, 4 * bytes);
  EXPECT_EQ(host.tables, nullptr);
  EXPECT_EQ(host.counts.place, TablePlace::kHost);
  const Made unsaid = Make(graph, {}, 4 * bytes);
  EXPECT_EQ(unsaid.counts.place, TablePlace::kDevice) << "as fits";
  for (const Made* made : {&whole, &cached, &host, &unsaid}) EXPECT_EQ(made->counts.instead, "");
}

TEST(TablesOnDevice, ABlockSaysWhyItHasThemElsewhere) {
  const Graph graph = *BuildGraph(testing::ZooJob("deepfm"));
  const double bytes = TableBytes(graph);
  const Made cached = Make(graph, {.place = TablePlace::kDevice}, 0.5 * bytes);
  EXPECT_EQ(cached.counts.place, TablePlace::kCache);
  EXPECT_THAT(cached.counts.instead, HasSubstr("The plan has embedding tables of "));
  EXPECT_THAT(cached.counts.instead, HasSubstr("it has a cache of "));
  const auto half = static_cast<int64_t>(0.5 * bytes);
  const Made host = Make(graph, {.place = TablePlace::kCache, .cache_bytes = half}, 0.01 * bytes);
  EXPECT_EQ(host.tables, nullptr);
  EXPECT_EQ(host.counts.place, TablePlace::kHost);
  EXPECT_THAT(host.counts.instead, HasSubstr("The plan has a cache of embedding rows of "));
  EXPECT_THAT(host.counts.instead, HasSubstr("stay in the memory of the host"));
}

// Ids by Zipf's law, the most frequent ones spread over the table.
Batch Skewed(int samples, int64_t rows, uint64_t seed) {
  std::vector<double> sums;
  for (int64_t i = 1; i <= rows; ++i) {
    sums.push_back((sums.empty() ? 0 : sums.back()) + std::pow(static_cast<double>(i), -1.1));
  }
  base::Rng rng(seed);
  Batch batch{.shape = {.fields = 1}, .samples = samples};
  for (int i = 0; i < samples; ++i) {
    const auto rank = std::ranges::lower_bound(sums, rng.Uniform(0, sums.back())) - sums.begin();
    batch.ids.push_back(static_cast<int32_t>(rank * 7919 % rows));
  }
  return batch;
}

// The ranking knows the most used rows, which a clock has to find: it finds nearly as many.
TEST(TablesOnDevice, ACacheHasThePartOfItsRowsThatTheDataPromise) {
  constexpr int64_t kRows = 20'011;
  constexpr int kBatch = 512, kBatches = 400;
  const Batch data = Skewed(kBatch * kBatches, kRows, 5);
  const ParameterSpec table{.rows = kRows, .columns = 4, .sparse = true, .fields = 1};
  const auto promised = CachedRowsOf(data.View(0, data.samples), data.shape, table, kBatch);
  ASSERT_EQ(promised.size(), 7U);
  for (const model::CachedRows& cached : promised) {
    RowSlots slots(kRows, static_cast<int64_t>(cached.share * kRows));
    int64_t used = 0, missed = 0;
    for (int b = 0; b < kBatches; ++b) {
      const auto first = data.ids.begin() + b * kBatch;
      std::vector<uint64_t> keys(first, first + kBatch);
      std::ranges::sort(keys);
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      const int64_t before = slots.misses();
      slots.Fetch(keys, b + 1, b - 1);
      if (b < kBatches / 2) continue;  // it begins empty
      used += std::ssize(keys);
      missed += slots.misses() - before;
    }
    const double found = 1 - static_cast<double>(missed) / static_cast<double>(used);
    std::printf("%.2f of the rows: %.3f promised, %.3f found\n", cached.share, cached.hits, found);
    EXPECT_NEAR(found, cached.hits, 0.1) << cached.share;
  }
}

TEST(TablesOnDevice, SharesOfACacheFollowTheData) {
  Batch data{.shape = {.fields = 2}, .samples = 40};  // the second field is another table's
  for (int i = 0; i < 40; ++i) data.ids.insert(data.ids.end(), {i % 2 == 0 ? 3 : 50 + i, 1});
  const ParameterSpec table{.rows = 100, .columns = 4, .sparse = true, .fields = 1};
  const auto cached = CachedRowsOf(data.View(0, 40), data.shape, table, 2);
  ASSERT_FALSE(cached.empty());
  EXPECT_DOUBLE_EQ(cached[0].share, 0.01);
  EXPECT_DOUBLE_EQ(cached[0].hits, 0.5) << "row 3, of two rows in each batch";
  EXPECT_DOUBLE_EQ(cached.back().hits, 0.5) << "the others are used once";
  EXPECT_THAT(CachedRowsOf(data.View(0, 40), data.shape, table, 40), ::testing::IsEmpty());
  ParameterSpec drawn = table;
  drawn.drawn = 1;
  EXPECT_THAT(CachedRowsOf(data.View(0, 40), data.shape, drawn, 2), ::testing::IsEmpty());
}

TEST(TablesOnDevice, AProfilerMeasuresTheTableWhereItWouldBe) {
  model::JobSpec job = worker::testing::AdultJob();
  job.model.hidden = {16};
  const auto data = *Dataset::Load(job.data.train, job.data, nullptr, {});
  const Graph graph = *FitGraph(job, *data, "");
  const Optimizer optimizer = *OptimizerOf(job.training);
  base::SystemClock clock;
  const StepTimerContext context{.graph = graph,
                                 .data = *data,
                                 .optimizer = optimizer,
                                 .device = *OpenTestedDevice(),
                                 .make_block = MakeBlock,
                                 .clock = clock,
                                 .stop = {}};
  const auto measured = TimeTablesOnDevice(context, 256, 2, 0.02);
  ASSERT_THAT(measured, IsOk());
  ASSERT_EQ(measured->size(), graph.operations.size());
  for (size_t i = 0; i < measured->size(); ++i) {
    ASSERT_EQ((*measured)[i].has_value(), graph.operations[i].HasTable()) << i;
    if (!(*measured)[i]) continue;
    EXPECT_GT((*measured)[i]->seconds, 0);
    EXPECT_GE((*measured)[i]->missed_seconds, 0) << "a difference of two times, which a busy machine may hide";
  }
  // Where the device has too little memory nothing is promised.
  const WithMemory none(100);
  const auto nothing = TimeTablesOnDevice(context, 256, 1, 0.001);
  EXPECT_TRUE(!nothing.ok() || std::ranges::none_of(*nothing, &std::optional<model::TablesOnDevice>::has_value));
}

TEST(TablesOnDevice, AProfilerOfACpuMeasuresNoTables) {
  const model::JobSpec job = worker::testing::AdultJob();
  const auto data = *Dataset::Load(job.data.train, job.data, nullptr, {});
  const Graph graph = *FitGraph(job, *data, "");
  const Optimizer optimizer = *OptimizerOf(job.training);
  base::SystemClock clock;
  const StepTimerContext context{.graph = graph, .data = *data, .optimizer = optimizer, .clock = clock, .stop = {}};
  const auto measured = TimeTablesOnDevice(context, 64, 1, 0.001);
  ASSERT_THAT(measured, IsOk());
  EXPECT_TRUE(std::ranges::none_of(*measured, &std::optional<model::TablesOnDevice>::has_value));
}

}  // namespace
}  // namespace medley::worker::aten
