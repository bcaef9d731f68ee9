#include "worker/pipeline/executor.h"
#include "common/model/execution_plan.h"
#include "common/model/model.h"

#include <gtest/gtest.h>

#include <cmath>

#include <thread>

#include "common/base/status.h"
#include "common/base/testing/fake_clock.h"
#include "common/program/compile.h"
#include "tests/unit/worker/pipeline/pipeline_harness.h"
#include "worker/model/block_model.h"
#include "worker/pipeline/local_tables.h"
#include "worker/pipeline/testing/memory_fabric.h"

namespace medley::worker::testing {
namespace {

// Tests one trainer with a few rows and local tables.
class ExecutorTest : public ::testing::Test {
 protected:
  ExecutorTest() {
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
    model_ = *BlockModel::Create(graph_, {0, 4}, optimizer_, 1);
  }
  // The executor of one device of a plan with these stages and two micro-batches.
  std::unique_ptr<Executor> MakeExecutor(const std::vector<model::OperationRange>& stages = {{0, 4}}, int device = 0,
                                         FlowChannel* channel = nullptr) {
    Layout layout{stages, std::vector<std::vector<double>>(stages.size(), {1.0}), 2};
    const model::ExecutionPlan plan = PlanOf(layout, graph_);
    programs_ = {*program::Compile(plan, graph_.ToModel()), *program::CompileEvaluation(plan, graph_.ToModel())};
    return *Executor::Create(programs_, device, Parts(device, channel), optimizer_, 1);
  }
  ExecutorParts Parts(int device, FlowChannel* channel) {
    ExecutorParts parts{.blocks = std::vector<BlockCompute*>(programs_.training.blocks.size(), nullptr),
                        .data = data_.get(),
                        .channel = channel,
                        .sparse = tables_.get(),
                        .clock = &clock_};
    parts.blocks[static_cast<size_t>(device)] = model_.get();
    return parts;
  }

  model::JobSpec job_;
  const Optimizer optimizer_ = *MakeOptimizer("adagrad", 0.05);
  std::shared_ptr<const Dataset> data_;
  Graph graph_;
  std::unique_ptr<LocalTables> tables_;
  std::unique_ptr<BlockModel> model_;
  Programs programs_;
  base::SystemClock clock_;
};

TEST_F(ExecutorTest, RunsStepsWithAndWithoutPrefetch) {
  const auto executor = MakeExecutor();
  executor->Prefetch({1, 0, 0, 16});
  executor->Prefetch({2, 0, 16, 16});
  for (int64_t step = 1; step <= 2; ++step) {
    const auto result = executor->RunStep({step, 0, (step - 1) * 16, 16}, {});
    ASSERT_TRUE(result.ok()) << base::ToString(result.status());
    ASSERT_TRUE(result->has_value());
    EXPECT_EQ((*result)->loss_samples, 16);
    EXPECT_GE((*result)->compute_seconds, 0);
  }
  EXPECT_TRUE(executor->RunStep({3, 0, 32, 8}, {}).ok());
  EXPECT_EQ(tables_->AppliedStep(), 3);
  EXPECT_EQ(model_->AppliedStep(), 3);
}

TEST_F(ExecutorTest, RefusesLeasesOutOfOrderAndBeyondTheData) {
  const auto executor = MakeExecutor();
  EXPECT_EQ(executor->RunStep({2, 0, 0, 16}, {}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(executor->RunStep({1, 0, 32, 16}, {}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(executor->RunStep({1, 0, 0, 16}, {}).ok());
}

TEST_F(ExecutorTest, RollsBackAndRunsTheStepAgainWithTheSameResult) {
  const auto executor = MakeExecutor();
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
  EXPECT_EQ((*first)->loss_sum, (*again)->loss_sum);
}

TEST_F(ExecutorTest, AGradientLongerThanTheNormIsShortenedToIt) {
  model::JobSpec job = job_;
  job.model.name = "mlp";
  job.model.hidden = {8};
  job.data.schema.categorical.clear();
  Batch rows{.shape = {0, 1}, .samples = 16};
  for (int i = 0; i < 16; ++i) {
    rows.numerics.push_back(static_cast<float>(i % 5) - 1);
    rows.labels.push_back(i % 5 > 2 ? 1 : 0);
  }
  const std::shared_ptr<const Dataset> data = Dataset::FromBatch(std::move(rows));
  // The change of all weights in one step of SGD with the rate 1 is the gradient.
  const auto change = [&](double clip) {
    job.training.clip_norm.reset();
    if (clip > 0) job.training.clip_norm = clip;
    const Graph graph = *BuildGraph(job);
    Optimizer optimizer = *MakeOptimizer("sgd", 1);
    optimizer.clip_norm = static_cast<float>(clip);
    const int operations = static_cast<int>(graph.operations.size());
    const auto model = *BlockModel::Create(graph, {0, operations}, optimizer, 1);
    const auto weights = [&] {
      std::vector<float> all;
      for (const DenseParameter& parameter : model->Parameters())
        all.insert(all.end(), parameter.weights.begin(), parameter.weights.end());
      return all;
    };
    const std::vector<float> before = weights();
    const model::ExecutionPlan plan = PlanOf({{{0, operations}}, {{1.0}}, 1}, graph);
    const Programs programs{*program::Compile(plan, graph.ToModel()),
                            *program::CompileEvaluation(plan, graph.ToModel())};
    const auto executor =
        *Executor::Create(programs, 0, {.blocks = {model.get()}, .data = data.get(), .clock = &clock_}, optimizer, 1);
    EXPECT_TRUE(executor->RunStep({1, 0, 0, 16}, {}).ok());
    std::vector<float> out = weights();
    for (size_t i = 0; i < before.size(); ++i) out[i] = before[i] - out[i];
    return out;
  };
  const auto norm = [](const std::vector<float>& values) {
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
    return std::sqrt(sum);
  };
  const std::vector<float> free = change(0), same = change(1e3), clipped = change(0.01);
  ASSERT_GT(norm(free), 0.02);
  EXPECT_EQ(free, same);
  EXPECT_NEAR(norm(clipped), 0.01, 1e-5);
  for (size_t i = 0; i < free.size(); ++i) EXPECT_NEAR(clipped[i], free[i] * 0.01 / norm(free), 1e-6);
}

TEST_F(ExecutorTest, AProbeChangesNothing) {
  const auto losses = [&](bool probes) {
    model_ = *BlockModel::Create(graph_, {0, 4}, optimizer_, 1);
    tables_ = std::make_unique<LocalTables>(graph_.Parameters(true), optimizer_, 1);
    const auto executor = MakeExecutor();
    std::vector<double> sums;
    for (int64_t step = 1; step <= 4; ++step) {
      if (probes) {
        const absl::StatusOr<double> seconds = executor->Probe(16, base::milliseconds(1));
        EXPECT_TRUE(seconds.ok()) << base::ToString(seconds.status());
        EXPECT_GT(seconds.value_or(0), 0);
      }
      const auto result = executor->RunStep({step, 0, (step - 1) * 8, 8}, {});
      EXPECT_TRUE(result.ok()) << base::ToString(result.status());
      sums.push_back((*result)->loss_sum);
    }
    return sums;
  };
  EXPECT_EQ(losses(true), losses(false));
}

// A millisecond passes with each look at it, and sleepers wake `late`.
class TickingClock final : public base::Clock {
 public:
  base::WallTime Now() const override { return {}; }
  base::SteadyTime Steady() const override { return now_ += base::milliseconds(1); }
  bool SleepUntil(base::SteadyTime deadline, std::stop_token) override {
    now_ = std::max(now_, deadline) + late_;
    ++sleeps_;
    return true;
  }
  base::nanoseconds late_{0};
  int sleeps_ = 0;

 private:
  mutable base::SteadyTime now_{base::seconds(5)};
};

TEST_F(ExecutorTest, AProbePausesBetweenItsPasses) {
  MakeExecutor();  // compiles the programs
  TickingClock clock;
  ExecutorParts parts = Parts(0, nullptr);
  parts.clock = &clock;
  const auto executor = *Executor::Create(programs_, 0, std::move(parts), optimizer_, 1);
  EXPECT_NEAR(executor->Probe(16, {}).value_or(0), 0.001, 1e-9);
  EXPECT_EQ(clock.sleeps_, 0);
  EXPECT_NEAR(executor->Probe(16, base::milliseconds(10)).value_or(0), 0.001, 1e-9) << "pauses do not count";
  EXPECT_EQ(clock.sleeps_, 50);
  clock.late_ = base::milliseconds(4);
  EXPECT_NEAR(executor->Probe(16, base::milliseconds(10)).value_or(0), 0.005, 1e-9) << "it was stopped in a pause";
  clock.late_ = {};
  clock.sleeps_ = 0;
  EXPECT_NEAR(executor->Probe(16, base::seconds(60)).value_or(0), 0.001, 1e-9);
  EXPECT_EQ(clock.sleeps_, 10) << "pauses of 100 ms, for a second";
}

// Nothing comes from the stage before.
TEST_F(ExecutorTest, AProbeNeedsNoPeer) {
  MemoryFabric fabric;
  model_ = *BlockModel::Create(graph_, {1, 4}, optimizer_, 1);
  const std::unique_ptr<FlowChannel> channel = fabric.End(1);
  const auto executor = MakeExecutor({{0, 1}, {1, 4}}, 1, channel.get());
  for (const int count : {1, 16, 1000}) {  // one is less than a sample a micro-batch; there are 40 rows
    const absl::StatusOr<double> seconds = executor->Probe(count, {});
    ASSERT_TRUE(seconds.ok()) << base::ToString(seconds.status());
    EXPECT_GT(*seconds, 0);
  }
}

TEST_F(ExecutorTest, AStopEndsAWaitForAPeer) {
  MemoryFabric fabric;
  model_ = *BlockModel::Create(graph_, {1, 4}, optimizer_, 1);
  const std::unique_ptr<FlowChannel> channel = fabric.End(1);
  const auto executor = MakeExecutor({{0, 1}, {1, 4}}, 1, channel.get());
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

TEST_F(ExecutorTest, AnEvaluationHasADeadlineForEachChunkOnly) {
  base::FakeClock clock;
  SlowRows rows(*tables_, clock);
  MakeExecutor();
  ExecutorParts parts = Parts(0, nullptr);
  parts.sparse = &rows;
  parts.clock = &clock;
  const auto executor = *Executor::Create(programs_, 0, parts, optimizer_, 1);
  int chunks = 0;
  const EvaluationOptions options{
      .chunk = 4, .chunk_timeout = std::chrono::hours(2), .stop = {}, .on_chunk = [&] { ++chunks; }};
  const auto result = executor->Evaluate(*data_, 0, options);
  ASSERT_TRUE(result.ok()) << base::ToString(result.status());
  EXPECT_EQ(result->samples, 40);
  EXPECT_EQ(chunks, 10);
  EXPECT_EQ(rows.left, std::vector<base::nanoseconds>(10, std::chrono::hours(2)));
  rows.stuck = true;
  EXPECT_EQ(executor->Evaluate(*data_, 0, options).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(chunks, 10);
}

// The first of two stages keeps two steps open.
TEST_F(ExecutorTest, EvaluatesOnlyBetweenStepsAndDrainsWhatIsOpen) {
  MemoryFabric fabric;
  model_ = *BlockModel::Create(graph_, {0, 2}, optimizer_, 1, nullptr, 2);
  tables_ = std::make_unique<LocalTables>(graph_.Parameters(true), optimizer_, 1, 2);
  model::ExecutionPlan plan = PlanOf({{{0, 2}, {2, 4}}, {{1.0}, {1.0}}, 1}, graph_);
  plan.schedule.kind = model::ScheduleKind::kAsync1F1B;
  programs_ = {*program::Compile(plan, graph_.ToModel()), *program::CompileEvaluation(plan, graph_.ToModel())};
  const std::unique_ptr<FlowChannel> first = fabric.End(0), second = fabric.End(1);
  const auto executor = *Executor::Create(programs_, 0, Parts(0, first.get()), optimizer_, 1);
  const auto begun = executor->RunStep({1, 0, 0, 16}, {});
  ASSERT_TRUE(begun.ok()) << base::ToString(begun.status());
  EXPECT_FALSE(begun->has_value());
  EXPECT_EQ(model_->AppliedStep(), 0);
  EXPECT_EQ(executor->Evaluate(*data_, 0, {}).status().message(), "step 1 is open, so nothing can be evaluated");
  EXPECT_EQ(executor->RunStep({3, 0, 0, 16}, {}).status().message(),
            "got the lease of step 3, but step 1 was the last to begin");
  executor->DropPrefetched();
  const auto flow_of = [&](bool gradient) {
    const auto flow = std::ranges::find(programs_.training.flows, gradient, &program::Flow::gradient);
    return static_cast<int>(flow - programs_.training.flows.begin());
  };
  std::vector<float> sent(16 * 8);
  ASSERT_TRUE(second->Recv({false, flow_of(false), 1, 0}, 0, sent, {}).ok());
  EXPECT_EQ(base::ToString(executor->RunStep({1, 0, 0, 16}, {}).status()), "OK");
  const std::vector<float> gradient(sent.size(), 0.5F);
  ASSERT_TRUE(second->Send({false, flow_of(true), 1, 0}, 0, gradient, {}).ok());
  const auto ended = executor->Drain({});
  ASSERT_TRUE(ended.ok()) << base::ToString(ended.status());
  ASSERT_TRUE(ended->has_value());
  EXPECT_EQ((*ended)->step, 1);
  EXPECT_EQ(model_->AppliedStep(), 1);
  EXPECT_FALSE((*executor->Drain({})).has_value());
}

}  // namespace
}  // namespace medley::worker::testing
