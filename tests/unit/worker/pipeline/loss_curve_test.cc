// The loss curve must not depend on the plan: it is the same for one process and for any arrangement of stages and
// replicas.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "tests/unit/worker/pipeline/pipeline_harness.h"

namespace medley::worker::testing {
namespace {

class LossCurveTest : public ::testing::Test {
 protected:
  static model::JobSpec Job() {
    model::JobSpec job = AdultJob();
    job.model.name.clear();
    job.model.embedding_rows = 4096;
    job.model.layers = {{"embedding", "Embedding", 8, ""},
                        {"fc1", "FullyConnected", 64, "tanh"},
                        {"fc2", "FullyConnected", 32, "tanh"},
                        {"fc_out", "FullyConnected", 1, ""},
                        {"loss", "Loss", 0, ""}};
    job.training.batch_size = 512;
    job.training.epochs = 4;
    return job;
  }
  static void SetUpTestSuite() {
    const model::JobSpec job = Job();
    data_ = *Dataset::Load(job.data.train, job.data, nullptr, {.embedding_rows = job.model.embedding_rows});
    reference_ = Run(job, {{{0, 5}}, {{1.0}}});
    ASSERT_EQ(reference_.size(), 200U);
  }
  static void TearDownTestSuite() { data_.reset(); }

  static std::vector<double> Run(const model::JobSpec& job, const Layout& layout, int64_t steps = 200) {
    const absl::StatusOr<RunOutcome> outcome = Train(job, layout, *data_, nullptr, steps);
    EXPECT_TRUE(outcome.ok()) << base::ToString(outcome.status());
    return outcome.ok() ? outcome->losses : std::vector<double>();
  }
  static void ExpectSame(const std::vector<double>& losses, const std::vector<double>& expected = reference_) {
    ASSERT_EQ(losses.size(), expected.size());
    double worst = 0;
    for (size_t i = 0; i < losses.size(); ++i) worst = std::max(worst, std::abs(losses[i] / expected[i] - 1));
    RecordProperty("worst_relative_difference", std::to_string(worst * 1e6) + "e-6");
    EXPECT_LT(worst, 1e-4);
  }

  static inline std::shared_ptr<const Dataset> data_;
  static inline std::vector<double> reference_;
};

TEST_F(LossCurveTest, FallsInOneProcess) {
  EXPECT_GT(reference_.front(), 0.5);
  double last = 0;
  for (size_t i = 150; i < 200; ++i) last += reference_[i] / 50;
  EXPECT_LT(last, 0.35);
}

TEST_F(LossCurveTest, TwoStagesOfTwoReplicas) { ExpectSame(Run(Job(), {{{0, 1}, {1, 5}}, {{1, 1}, {1, 1}}, 4})); }

TEST_F(LossCurveTest, DataParallel) { ExpectSame(Run(Job(), {{{0, 5}}, {{1, 1, 1}}, 1})); }

TEST_F(LossCurveTest, DifferentWidthsAndShares) {
  ExpectSame(Run(Job(), {{{0, 1}, {1, 3}, {3, 5}}, {{1}, {0.2, 0.5, 0.3}, {3, 1}}, 3}));
}

TEST_F(LossCurveTest, GpipeWithManyMicroBatches) {
  ExpectSame(Run(Job(), {{{0, 2}, {2, 4}, {4, 5}}, {{1, 1}, {1}, {1}}, 7, model::ScheduleKind::kGpipe}));
}

// Every operation is a bucket, so gradients are reduced while the backward pass goes on.
TEST_F(LossCurveTest, BucketsReducedDuringTheBackwardPass) {
  ExpectSame(Run(Job(), {{{0, 5}}, {{1, 1, 1}}, 1, model::ScheduleKind::kSync1F1B, 1}));
  ExpectSame(Run(Job(), {{{0, 1}, {1, 5}}, {{1, 1}, {1, 1}}, 4, model::ScheduleKind::kSync1F1B, 1}));
}

// Masks are a function of step and sample, so plans do not change them.
TEST_F(LossCurveTest, Dropout) {
  model::JobSpec job = Job();
  for (const std::ptrdiff_t at : {3, 2, 1}) {
    job.model.layers.insert(job.model.layers.begin() + at, {"drop" + std::to_string(at), "Dropout", 0, "", 0.3});
  }
  const std::vector<double> one = Run(job, {{{0, 5}}, {{1.0}}}, 40);
  EXPECT_NE(one, std::vector<double>(reference_.begin(), reference_.begin() + 40));
  ExpectSame(Run(job, {{{0, 1}, {1, 3}, {3, 5}}, {{1}, {0.2, 0.5, 0.3}, {3, 1}}, 3}, 40), one);
  ExpectSame(Run(job, {{{0, 5}}, {{1, 1, 1}}, 1}, 40), one);
}

TEST_F(LossCurveTest, RowsDecay) {
  model::JobSpec job = Job();
  job.training.optimizer = "adamw";
  job.training.learning_rate = 0.003;
  job.training.row_decay = 0.5;
  const std::vector<double> one = Run(job, {{{0, 5}}, {{1.0}}}, 40);
  ExpectSame(Run(job, {{{0, 1}, {1, 3}, {3, 5}}, {{1}, {0.2, 0.5, 0.3}, {3, 1}}, 3}, 40), one);
  job.training.row_decay = 0;
  EXPECT_NE(Run(job, {{{0, 5}}, {{1.0}}}, 40), one);
}

// Adult's column fnlwgt is how many people a row stands for.
TEST_F(LossCurveTest, WeightsOfRows) {
  model::JobSpec job = Job();
  std::erase(job.data.schema.numeric, 2);
  job.data.schema.weight_column = 2;
  const auto data = *Dataset::Load(job.data.train, job.data, nullptr, {.embedding_rows = job.model.embedding_rows});
  const auto run = [&](const Layout& layout) {
    const absl::StatusOr<RunOutcome> outcome = Train(job, layout, *data, data.get(), 30);
    EXPECT_TRUE(outcome.ok()) << base::ToString(outcome.status());
    return *outcome;
  };
  const RunOutcome one = run({{{0, 5}}, {{1.0}}});
  const RunOutcome other = run({{{0, 1}, {1, 3}, {3, 5}}, {{1}, {0.2, 0.5, 0.3}, {3, 1}}, 3});
  ExpectSame(other.losses, one.losses);
  EXPECT_NEAR(other.auc, one.auc, 1e-4);
  job.data.schema.weight_column = -1;
  const auto plain = *Dataset::Load(job.data.train, job.data, nullptr, {.embedding_rows = job.model.embedding_rows});
  EXPECT_NE(Train(job, {{{0, 5}}, {{1.0}}}, *plain, nullptr, 30)->losses, one.losses);
}

TEST_F(LossCurveTest, ReluInShort) {
  model::JobSpec job = Job();
  job.model.layers.clear();
  job.model.name = "ctrdnn";
  job.model.embedding_dim = 8;
  job.model.hidden = {64, 32};
  ExpectSame(Run(job, {{{0, 1}, {1, 5}}, {{1, 1}, {1, 1}}, 4}, 40), Run(job, {{{0, 5}}, {{1.0}}}, 40));
}

// Models that are no chain: values skip stages, have consumers in several of them, and gradients are added.
model::JobSpec GraphJob(const std::string& name) {
  model::JobSpec job = AdultJob();
  job.model.name = name;
  job.model.embedding_rows = 4096;  // as in data_
  job.model.embedding_dim = 4;
  job.model.hidden = {32, 16, 32, 8, 32};
  if (name == "two-tower") job.model.hidden = {32, 16};
  job.training.batch_size = 256;
  return job;
}

// embedding fc1 fc2 fc3 add3 fc4 fc5 add5 fc_out loss
TEST_F(LossCurveTest, ResidualModel) {
  const model::JobSpec job = GraphJob("residual");
  const std::vector<double> expected = Run(job, {{{0, 10}}, {{1.0}}}, 40);
  ASSERT_EQ(expected.size(), 40U);
  EXPECT_LT(expected.back(), expected.front());
  ExpectSame(Run(job, {{{0, 2}, {2, 3}, {3, 10}}, {{1}, {1}, {1}}, 3}, 40), expected);
  ExpectSame(Run(job, {{{0, 2}, {2, 5}, {5, 6}, {6, 10}}, {{1, 1}, {0.3, 0.7}, {1}, {1, 2, 1}}, 2}, 40), expected);
  const model::ScheduleKind gpipe = model::ScheduleKind::kGpipe;
  ExpectSame(Run(job, {{{0, 3}, {3, 4}, {4, 7}, {7, 10}}, {{1, 1}, {1, 1}, {1}, {1}}, 5, gpipe}, 40), expected);
  // Each operation is a block, so that additions are between blocks of one device too.
  ExpectSame(Run(job, {{{0, 10}}, {{1, 1}}, 2, model::ScheduleKind::kSync1F1B, 1}, 40), expected);
  ExpectSame(Run(job, {{{0, 1}, {1, 10}}, {{1, 1}, {2, 1}}, 2, model::ScheduleKind::kSync1F1B, 1}, 40), expected);
}

// embedding_1 fc1_1 fc1_2 embedding_2 fc2_1 fc2_2 product fc_out loss
TEST_F(LossCurveTest, TwoTowerModel) {
  const model::JobSpec job = GraphJob("two-tower");
  const std::vector<double> expected = Run(job, {{{0, 9}}, {{1.0}}}, 40);
  ASSERT_EQ(expected.size(), 40U);
  EXPECT_LT(expected.back(), expected.front());
  ExpectSame(Run(job, {{{0, 3}, {3, 6}, {6, 9}}, {{1}, {1}, {1}}, 2}, 40), expected);
  ExpectSame(Run(job, {{{0, 3}, {3, 6}, {6, 9}}, {{1, 1}, {0.3, 0.7}, {2, 1}}, 4}, 40), expected);
  ExpectSame(Run(job, {{{0, 2}, {2, 4}, {4, 9}}, {{1, 1}, {1, 1}, {1}}, 3, model::ScheduleKind::kGpipe}, 40), expected);
  ExpectSame(Run(job, {{{0, 9}}, {{1, 1, 1}}, 2, model::ScheduleKind::kSync1F1B, 1}, 40), expected);
}

TEST_F(LossCurveTest, AnotherSeedIsAnotherCurve) {
  model::JobSpec job = Job();
  job.training.seed = 2;
  const std::vector<double> losses = Run(job, {{{0, 5}}, {{1.0}}});
  ASSERT_EQ(losses.size(), reference_.size());
  EXPECT_GT(std::abs(losses[9] - reference_[9]), 1e-4);
}

}  // namespace
}  // namespace medley::worker::testing
