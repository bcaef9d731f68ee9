#include "worker/pipeline/step_executor.h"

#include <gtest/gtest.h>

#include <thread>

#include "common/base/status.h"
#include "common/base/testing/fake_clock.h"
#include "tests/unit/worker/pipeline/pipeline_harness.h"
#include "worker/model/stage_model.h"
#include "worker/pipeline/local_tables.h"
#include "worker/pipeline/testing/memory_fabric.h"

namespace medley::worker::testing {
namespace {

// Tests one trainer with a few rows and local tables.
class StepExecutorTest : public ::testing::Test {
 protected:
  StepExecutorTest() {
    job_ = AdultJob();
    job_.data.train = {"file:///none", "csv"};
    job_.data.schema = {.label_column = 0, .categorical = {1, 2}, .numeric = {3}};
    job_.model.embedding_rows = 20;
    job_.model.embedding_dim = 4;
    job_.model.hidden = {8};
    Batch rows{.shape = {2, 1}, .samples = 40};
    for (int i = 0; i < 40; ++i) {
      rows.ids.push_back(i % 20);
      rows.ids.push_back(i * 7 % 20);
      rows.numerics.push_back(static_cast<float>(i % 5) - 2);
      rows.labels.push_back(static_cast<float>(i % 2));
    }
    data_ = Dataset::FromBatch(std::move(rows));
    graph_ = *BuildGraph(job_);
    tables_ = std::make_unique<LocalTables>(graph_.Parameters(true), optimizer_, 1);
    model_ = *StageModel::Create(graph_, {0, 4}, optimizer_, 1);
  }
  std::unique_ptr<StepExecutor> Executor(StagePlace place = {.shares = {{1.0}}}, ActivationChannel* channel = nullptr) {
    return std::make_unique<StepExecutor>(
        std::move(place), StepParts{model_.get(), data_.get(), channel, tables_.get(), nullptr, &clock_}, optimizer_);
  }

  model::JobSpec job_;
  const Optimizer optimizer_ = *MakeOptimizer("adagrad", 0.05);
  std::shared_ptr<const Dataset> data_;
  Graph graph_;
  std::unique_ptr<LocalTables> tables_;
  std::unique_ptr<StageModel> model_;
  base::SystemClock clock_;
};

TEST_F(StepExecutorTest, RunsStepsWithAndWithoutPrefetch) {
  const auto executor = Executor();
  executor->Prefetch({1, 0, 0, 16});
  executor->Prefetch({2, 0, 16, 16});
  for (int64_t step = 1; step <= 2; ++step) {
    const auto result = executor->RunStep({step, 0, (step - 1) * 16, 16}, {});
    ASSERT_TRUE(result.ok()) << base::ToString(result.status());
    EXPECT_EQ(result->loss_samples, 16);
    EXPECT_GE(result->compute_seconds, 0);
  }
  EXPECT_TRUE(executor->RunStep({3, 0, 32, 8}, {}).ok());
  EXPECT_EQ(tables_->AppliedStep(), 3);
  EXPECT_EQ(model_->AppliedStep(), 3);
}

TEST_F(StepExecutorTest, RefusesLeasesOutOfOrderAndBeyondTheData) {
  const auto executor = Executor();
  EXPECT_EQ(executor->RunStep({2, 0, 0, 16}, {}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(executor->RunStep({1, 0, 32, 16}, {}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(executor->RunStep({1, 0, 0, 16}, {}).ok());
}

TEST_F(StepExecutorTest, RollsBackAndRunsTheStepAgainWithTheSameResult) {
  const auto executor = Executor();
  ASSERT_TRUE(executor->RunStep({1, 0, 0, 16}, {}).ok());
  executor->Prefetch({2, 0, 16, 16});
  executor->Prefetch({3, 1, 0, 16});
  const auto first = executor->RunStep({2, 0, 16, 16}, {});
  ASSERT_TRUE(first.ok());
  executor->DropPrefetched();
  ASSERT_TRUE(model_->UndoTo(1).ok());
  ASSERT_TRUE(tables_->UndoTo(1).ok());
  const auto again = executor->RunStep({2, 0, 16, 16}, {});
  ASSERT_TRUE(again.ok()) << base::ToString(again.status());
  EXPECT_EQ(first->loss_sum, again->loss_sum);
}

TEST_F(StepExecutorTest, AStopEndsAWaitForAPeer) {
  MemoryFabric fabric;
  model_ = *StageModel::Create(graph_, {1, 4}, optimizer_, 1);
  const std::unique_ptr<ActivationChannel> channel = fabric.End(1, 0);
  const auto executor = Executor({.stage = 1, .shares = {{1.0}, {1.0}}, .micro_batches = 2}, channel.get());
  std::stop_source stop;
  absl::Status status;
  std::jthread runner([&] { status = executor->RunStep({1, 0, 0, 16}, {stop.get_token()}).status(); });
  stop.request_stop();
  runner.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(model_->AppliedStep(), 0);
  EXPECT_EQ(executor->RunStep({1, 0, 0, 16}, {{}, base::SteadyTime::min()}).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

// Rows whose pull takes an hour of the test's clock.
class SlowRows final : public SparseParameters {
 public:
  SlowRows(SparseParameters& rows, base::FakeClock& clock) : rows_(rows), clock_(clock) {}
  absl::Status Pull(int64_t step, std::span<const TableKeys> tables, std::vector<std::vector<float>>& rows,
                    const WaitLimit& limit) override {
    left.push_back(limit.deadline - clock_.Steady());
    clock_.Advance(std::chrono::hours(1));
    if (stuck) return base::DeadlineExceeded("no rows");
    return rows_.Pull(step, tables, rows, {limit.stop});
  }
  absl::Status Push(int64_t, std::span<const TableKeys>, std::span<const std::span<const float>>, int64_t,
                    const WaitLimit&) override {
    return absl::OkStatus();
  }
  std::vector<base::nanoseconds> left;  // the time that each pull had
  bool stuck = false;

 private:
  SparseParameters& rows_;
  base::FakeClock& clock_;
};

TEST_F(StepExecutorTest, AnEvaluationHasADeadlineForEachChunkOnly) {
  base::FakeClock clock;
  SlowRows rows(*tables_, clock);
  StepExecutor executor({.shares = {{1.0}}}, {model_.get(), data_.get(), nullptr, &rows, nullptr, &clock}, optimizer_);
  int chunks = 0;
  const EvaluationOptions options{
      .chunk = 4, .chunk_timeout = std::chrono::hours(2), .stop = {}, .on_chunk = [&] { ++chunks; }};
  const auto result = executor.Evaluate(*data_, 0, options);
  ASSERT_TRUE(result.ok()) << base::ToString(result.status());
  EXPECT_EQ(result->samples, 40);
  EXPECT_EQ(chunks, 10);
  EXPECT_EQ(rows.left, std::vector<base::nanoseconds>(10, std::chrono::hours(2)));
  rows.stuck = true;
  EXPECT_EQ(executor.Evaluate(*data_, 0, options).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(chunks, 10);
}

TEST_F(StepExecutorTest, ThePlanDeterminesAReplicasPlace) {
  model::ExecutionPlan plan;
  plan.stages = {{.operations = {{0, 1}}, .groups = {{"a", 2, 1}}}, {.operations = {{1, 4}}, .groups = {{"b", 1, 1}}}};
  plan.schedule.micro_batches = 3;
  const StagePlace place = PlaceOf(plan, 1, 0, 7);
  EXPECT_EQ(place.shares, (std::vector<std::vector<double>>{{0.5, 0.5}, {1}}));
  EXPECT_EQ(place.micro_batches, 3);
  EXPECT_EQ(place.seed, 7U);
}

}  // namespace
}  // namespace medley::worker::testing
