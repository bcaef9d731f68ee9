// The executor with asynchronous schedules, against one process that follows PipeDream's equation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "tests/unit/worker/pipeline/asynchronous_reference.h"
#include "tests/unit/worker/pipeline/pipeline_harness.h"

namespace medley::worker::testing {
namespace {

class AsynchronousTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const model::JobSpec job = Job("adagrad");
    data_ = *Dataset::Load(job.data.train, job.data, nullptr, {.embedding_rows = job.model.embedding_rows});
  }
  static void TearDownTestSuite() { data_.reset(); }

  static model::JobSpec Job(const std::string& optimizer) {
    model::JobSpec job = AdultJob();
    job.model.name.clear();
    job.model.embedding_rows = 512;
    job.model.layers = {{"embedding", "Embedding", 4, ""},
                        {"fc1", "FullyConnected", 32, "tanh"},
                        {"fc2", "FullyConnected", 16, "tanh"},
                        {"fc_out", "FullyConnected", 1, ""},
                        {"loss", "Loss", 0, ""}};
    job.training.batch_size = 128;
    job.training.optimizer = optimizer;
    job.training.learning_rate = 0.02;
    return job;
  }

  static std::vector<double> Reference(const model::JobSpec& job, const Layout& layout, int64_t steps) {
    const ReferencePipeline pipeline{layout.stages, layout.micro_batches, layout.max_staleness};
    return ReferenceLosses(job, *data_, {{{1, pipeline}}, layout.drains}, steps);
  }

  static void ExpectReference(const std::string& optimizer, const Layout& layout, int64_t steps = 60) {
    const model::JobSpec job = Job(optimizer);
    const absl::StatusOr<RunOutcome> outcome = Train(job, layout, *data_, nullptr, steps);
    ASSERT_TRUE(outcome.ok()) << base::ToString(outcome.status());
    const std::vector<double> expected = Reference(job, layout, steps);
    ASSERT_EQ(outcome->losses.size(), expected.size());
    double worst = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      worst = std::max(worst, std::abs(outcome->losses[i] / expected[i] - 1));
      ASSERT_LT(worst, 1e-4) << "step " << i + 1;
    }
    RecordProperty("worst_relative_difference", std::to_string(worst * 1e6) + "e-6");
  }

  static constexpr model::ScheduleKind kAsync = model::ScheduleKind::kAsync1F1B;
  static inline std::shared_ptr<const Dataset> data_;
};

TEST_F(AsynchronousTest, EqualsTheReference) {
  ExpectReference("adagrad", {{{0, 2}, {2, 5}}, {{1}, {1}}, 1, kAsync});
  ExpectReference("adagrad", {{{0, 2}, {2, 5}}, {{1}, {1}}, 4, kAsync});
  ExpectReference("adam", {{{0, 1}, {1, 2}, {2, 3}, {3, 5}}, {{1}, {1}, {1}, {1}}, 1, kAsync});
  ExpectReference("sgd", {{{0, 1}, {1, 2}, {2, 3}, {3, 5}}, {{1}, {1}, {1}, {1}}, 2, kAsync});
  ExpectReference("adagrad", {{{0, 1}, {1, 2}, {2, 3}, {3, 5}}, {{1}, {1}, {1}, {1}}, 3, kAsync});
}

TEST_F(AsynchronousTest, AStalenessIsNotExceeded) {
  for (int staleness = 1; staleness <= 3; ++staleness) {
    ExpectReference("adagrad", {{{0, 1}, {1, 2}, {2, 3}, {3, 5}}, {{1}, {1}, {1}, {1}}, 1, kAsync, 0, staleness});
  }
}

TEST_F(AsynchronousTest, DrainsAreExact) {
  ExpectReference("adagrad", {{{0, 1}, {1, 2}, {2, 3}, {3, 5}}, {{1}, {1}, {1}, {1}}, 1, kAsync, 0, 0, {1, 2, 17, 40}});
  ExpectReference("adam", {{{0, 2}, {2, 3}, {3, 5}}, {{1}, {1}, {1}}, 2, kAsync, 0, 0, {7, 8, 9, 31}});
}

TEST_F(AsynchronousTest, StagesMayHaveReplicasAndBuckets) {
  ExpectReference("adagrad", {{{0, 1}, {1, 3}, {3, 5}}, {{1}, {0.2, 0.5, 0.3}, {3, 1}}, 3, kAsync});
  ExpectReference("adagrad", {{{0, 1}, {1, 3}, {3, 5}}, {{1}, {1, 1}, {1, 1}}, 2, kAsync, 1, 0, {9}});
}

// The equation is no other name for a synchronous step.
TEST_F(AsynchronousTest, DiffersFromSynchronousSteps) {
  const model::JobSpec job = Job("adagrad");
  const Layout layout{{{0, 2}, {2, 5}}, {{1}, {1}}, 1, kAsync};
  Layout synchronous = layout;
  for (int64_t step = 1; step <= 60; ++step) synchronous.drains.insert(step);
  const std::vector<double> late = Reference(job, layout, 60), exact = Reference(job, synchronous, 60);
  EXPECT_GT(std::abs(late[20] / exact[20] - 1), 1e-4);
}

}  // namespace
}  // namespace medley::worker::testing
