// The executor with replicas that differ, against one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "tests/unit/worker/pipeline/pipeline_harness.h"
#include "tests/unit/worker/pipeline/replicas_reference.h"

namespace medley::worker::testing {
namespace {

class ModesTest : public ::testing::Test {
 protected:
  static model::JobSpec Job(const std::string& optimizer) {
    model::JobSpec job = AdultJob();
    job.data.schema.categorical.clear();
    job.data.schema.numeric_buckets = 0;
    job.model.name.clear();
    job.model.layers = {{"fc1", "FullyConnected", 16, "tanh"},
                        {"fc2", "FullyConnected", 8, "tanh"},
                        {"fc_out", "FullyConnected", 1, ""},
                        {"loss", "Loss", 0, ""}};
    job.training.batch_size = 128;
    job.training.optimizer = optimizer;
    job.training.learning_rate = 0.02;
    return job;
  }
  static void SetUpTestSuite() {
    const model::JobSpec job = Job("sgd");
    data_ = *Dataset::Load(job.data.train, job.data, nullptr, {});
  }
  static void TearDownTestSuite() { data_.reset(); }

  static void ExpectReference(const std::string& optimizer, const std::vector<double>& shares, const model::Sync& sync,
                              const std::vector<std::vector<size_t>>& groups, const std::set<int64_t>& agreements,
                              int64_t bucket_bytes = 0) {
    constexpr int64_t kSteps = 60;
    const model::JobSpec job = Job(optimizer);
    Layout layout{{{0, 4}}, {shares}};
    layout.bucket_bytes = bucket_bytes;
    layout.sync = sync;
    layout.agreements = agreements;
    const absl::StatusOr<RunOutcome> outcome = Train(job, layout, *data_, nullptr, kSteps);
    ASSERT_TRUE(outcome.ok()) << base::ToString(outcome.status());
    const std::vector<double> expected = ReferenceLosses(job, *data_, {{1, {shares, groups}}}, agreements, kSteps);
    ASSERT_EQ(outcome->losses.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(outcome->losses[i] / expected[i], 1, 1e-4) << "step " << i + 1;
    }
  }

  static std::set<int64_t> Every(int64_t steps) {
    std::set<int64_t> all;
    for (int64_t step = steps; step <= 60; step += steps) all.insert(step);
    return all;
  }

  static inline std::shared_ptr<const Dataset> data_;
};

TEST_F(ModesTest, EqualsTheReference) {
  const model::Sync sync{.kind = model::SyncKind::kAllreduce, .mode = model::SyncMode::kPercentage, .fraction = 0.25};
  ExpectReference("adagrad", {1, 1}, sync, {{0}, {1}}, Every(4));
  ExpectReference("adam", {0.2, 0.5, 0.3}, sync, {{0}, {1}, {2}}, {7, 8, 31, 60}, 1);
  ExpectReference("sgd", {1, 1, 1}, sync, {{0}, {1}, {2}}, {});
}

// Stages name their devices by pool, "p0/0".
TEST_F(ModesTest, GroupsAddGradientsInEveryStep) {
  model::Sync sync{.kind = model::SyncKind::kAllreduce, .mode = model::SyncMode::kFlexible, .target_ratio = 0.02};
  sync.hierarchy = {{{{"p0/0", "p0/1"}, {"p0/2", "p0/3"}}, model::AllreduceAlgorithm::kLinear}};
  ExpectReference("adagrad", {1, 1, 1, 1}, sync, {{0, 1}, {2, 3}}, Every(5));
  ExpectReference("adam", {3, 1, 2, 2}, sync, {{0, 1}, {2, 3}}, Every(10), 1);
}

// A mean after every step of a method without state is a step with the mean gradient.
TEST_F(ModesTest, AgreeingInEveryStepIsASynchronousStep) {
  const model::JobSpec job = Job("sgd");
  Layout layout{{{0, 4}}, {{1, 1}}};
  const absl::StatusOr<RunOutcome> full = Train(job, layout, *data_, nullptr, 60);
  layout.sync = {.kind = model::SyncKind::kAllreduce, .mode = model::SyncMode::kNone};
  const absl::StatusOr<RunOutcome> averaged = Train(job, layout, *data_, nullptr, 60);
  layout.agreements.emplace();
  const absl::StatusOr<RunOutcome> alone = Train(job, layout, *data_, nullptr, 60);
  ASSERT_TRUE(full.ok() && averaged.ok() && alone.ok());
  EXPECT_NEAR(averaged->losses.back() / full->losses.back(), 1, 1e-5);
  EXPECT_GT(std::abs(alone->losses.back() / full->losses.back() - 1), 1e-4);
}

}  // namespace
}  // namespace medley::worker::testing
