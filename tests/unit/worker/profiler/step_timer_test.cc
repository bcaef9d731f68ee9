#include "worker/profiler/step_timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/processor_time.h"
#include "common/base/status.h"
#include "common/model/job_spec.h"
#include "tests/unit/worker/pipeline/pipeline_harness.h"
#include "worker/model/fit_graph.h"
#include "worker/params/optimizer_of.h"

namespace medley::worker {
namespace {

using ::testing::ElementsAre;

// For one operation for each number of bytes, which are those of its parameters' values.
Graph OfBytes(const std::vector<int64_t>& all) {
  Graph graph;
  for (const int64_t bytes : all) {
    Operation& operation = graph.operations.emplace_back();
    if (bytes > 0) operation.parameters.push_back({.name = "weight", .rows = bytes / 4, .columns = 1});
  }
  return graph;
}

std::vector<std::pair<int, int>> Parts(const Graph& graph, int samples) {
  std::vector<std::pair<int, int>> parts;
  for (const model::OperationRange& part : MeasuredTogether(graph, 3, samples))
    parts.emplace_back(part.first, part.end);
  return parts;
}

// With a state factor of 3, parameters take four times their bytes.
TEST(MeasuredTogetherTest, DividesAModelByItsBytes) {
  constexpr int64_t kWhole = kMeasuredTogetherBytes / 4;
  EXPECT_THAT(Parts(OfBytes({0, 4, 0}), 1), ElementsAre(std::pair(0, 3)));
  EXPECT_THAT(Parts(OfBytes({kWhole, 4, kWhole / 2, kWhole / 2 - 4, 4, 0}), 1),
              ElementsAre(std::pair(0, 1), std::pair(1, 4), std::pair(4, 6)));
  EXPECT_THAT(Parts(OfBytes({4, 9 * kWhole, 4}), 1), ElementsAre(std::pair(0, 1), std::pair(1, 2), std::pair(2, 3)));
}

TEST(MeasuredTogetherTest, CountsOutputsBySamplesButNotTheRowsOfTables) {
  Graph graph = OfBytes({0, 0, 0});
  for (Operation& operation : graph.operations) operation.output_width = 1024;
  EXPECT_THAT(Parts(graph, 1), ElementsAre(std::pair(0, 3)));
  EXPECT_THAT(Parts(graph, kMeasuredTogetherBytes / (2 * 8 * 1024)), ElementsAre(std::pair(0, 2), std::pair(2, 3)));
  graph = OfBytes({kMeasuredTogetherBytes, 4});
  graph.operations.front().parameters.front().sparse = true;
  EXPECT_THAT(Parts(graph, 1), ElementsAre(std::pair(0, 2)));
}

class TimeStepsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    job_.model.hidden = {64, 32};
    auto data = Dataset::Load(job_.data.train, job_.data, nullptr, {});
    ASSERT_TRUE(data.ok()) << base::ToString(data.status());
    data_ = *data;
    auto graph = FitGraph(job_, *data_, "");
    ASSERT_TRUE(graph.ok()) << base::ToString(graph.status());
    graph_ = *std::move(graph);
    auto optimizer = OptimizerOf(job_.training);
    ASSERT_TRUE(optimizer.ok()) << base::ToString(optimizer.status());
    optimizer_ = *optimizer;
  }

  StepTimerContext Context(std::stop_token stop = {}) {
    return {.graph = graph_, .data = *data_, .optimizer = optimizer_, .clock = clock_, .stop = std::move(stop)};
  }

  model::JobSpec job_ = testing::AdultJob();
  base::SystemClock clock_;
  std::shared_ptr<const Dataset> data_;
  Graph graph_;
  Optimizer optimizer_;
};

TEST_F(TimeStepsTest, ReturnsTheCostsOfEachOperation) {
  const double processor = base::ProcessorSeconds();
  const auto costs = TimeSteps(Context(), {0, 5}, 256, 4, 0.2);
  const double spent = base::ProcessorSeconds() - processor;
  ASSERT_TRUE(costs.ok()) << base::ToString(costs.status());
  ASSERT_EQ(costs->size(), 5U);
  double all = 0;
  for (const OperationCost& cost : *costs) {
    EXPECT_GT(cost.burst_seconds, 0);
    EXPECT_GT(cost.seconds, 0);
    EXPECT_GT(cost.forward_part, 0);
    EXPECT_GE(cost.update_part, 0);
    EXPECT_LE(cost.forward_part + cost.update_part, 1);
    all += cost.processor_seconds;
  }
  EXPECT_GT(all, 0);
  EXPECT_LT(all, spent);                // of one step
  EXPECT_GT(costs->front().rows, 100);  // the embedding's
  EXPECT_LE(costs->front().rows, 256 * 14);
  EXPECT_EQ(costs->back().rows, 0);
}

// The second operation reads the outputs of the first, which is not measured.
TEST_F(TimeStepsTest, MeasuresAPartOfTheModel) {
  const auto costs = TimeSteps(Context(), {1, 3}, 3, 4, 0);
  ASSERT_TRUE(costs.ok()) << base::ToString(costs.status());
  EXPECT_EQ(costs->size(), 2U);
}

TEST_F(TimeStepsTest, EndsWhenStopped) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(TimeSteps(Context(stop.get_token()), {0, 5}, 256, 1, 100).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace medley::worker
