// Checks the model quality that the examples promise, with their hyper-parameters.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "tests/unit/worker/pipeline/pipeline_harness.h"

namespace medley::worker::testing {
namespace {

TEST(AdultTest, ReachesTheQualityOfTheExamples) {
  model::JobSpec job = AdultJob();
  job.model.embedding_dim = 16;
  job.model.hidden = {128, 128};
  job.training.epochs = 3;
  job.training.learning_rate = 0.05;
  const auto train = Dataset::Load(job.data.train, job.data, nullptr, {});
  ASSERT_TRUE(train.ok()) << base::ToString(train.status());
  const auto test = Dataset::Load(*job.data.test, job.data, &(*train)->transform(), {});
  ASSERT_TRUE(test.ok()) << base::ToString(test.status());
  for (const uint64_t seed : {1U, 2U}) {
    job.training.seed = seed;
    const Layout layout = seed == 1 ? Layout{{{0, 5}}, {{1}}} : Layout{{{0, 1}, {1, 5}}, {{1, 1}, {1}}, 2};
    const absl::StatusOr<RunOutcome> outcome = Train(job, layout, **train, test->get(), 0);
    ASSERT_TRUE(outcome.ok()) << base::ToString(outcome.status());
    EXPECT_GE(outcome->auc, 0.918) << "seed " << seed;
    EXPECT_LE(outcome->log_loss, 0.295) << "seed " << seed;
  }
}

// Rows that are sorted by their label are the worst case of windows: with one block each would have one label only. A
// window has 256 blocks as by default, and 1/64 of the data as the default has of 4 GiB.
TEST(AdultTest, SortedRowsAreLearntInWindowsAsWellAsInOnePermutation) {
  model::JobSpec job = AdultJob();
  job.model.embedding_dim = 8;
  job.model.hidden = {64, 32};
  job.training.epochs = 3;
  job.training.learning_rate = 0.05;
  const auto train = Dataset::Load(job.data.train, job.data, nullptr, {});
  ASSERT_TRUE(train.ok()) << base::ToString(train.status());
  const auto test = Dataset::Load(*job.data.test, job.data, &(*train)->transform(), {});
  ASSERT_TRUE(test.ok()) << base::ToString(test.status());
  std::vector<int64_t> rows(static_cast<size_t>((*train)->rows()));
  std::iota(rows.begin(), rows.end(), 0);
  std::ranges::stable_sort(rows, {}, [&](int64_t row) { return (*train)->view().labels[static_cast<size_t>(row)]; });
  Batch sorted;
  (*train)->Gather(rows, sorted);
  const auto data = Dataset::FromBatch(std::move(sorted), (*train)->transform());
  double sum[2] = {};
  for (const uint64_t seed : {1U, 2U, 3U}) {
    job.training.seed = seed;
    Layout layout{{{0, 5}}, {{1}}};
    for (const BlockOrder& blocks : {BlockOrder{}, BlockOrder{.block = 2, .window = 256}}) {
      layout.blocks = blocks;
      const absl::StatusOr<RunOutcome> outcome = Train(job, layout, *data, test->get(), 0);
      ASSERT_TRUE(outcome.ok()) << base::ToString(outcome.status());
      std::printf("seed %d, %s: AUC %.4f, log loss %.4f\n", static_cast<int>(seed),
                  blocks.window > 0 ? "windows of 1/64 of the data" : "one permutation", outcome->auc,
                  outcome->log_loss);
      sum[blocks.window > 0 ? 1 : 0] += outcome->auc;
    }
  }
  EXPECT_NEAR(sum[0] / 3, sum[1] / 3, 0.002);
}

}  // namespace
}  // namespace medley::worker::testing
