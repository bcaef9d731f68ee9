// What ends of stages cost: the closed form of cost against the simulator and against numbers computed by hand.
#include <gtest/gtest.h>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/planner/execution_plan.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planning/judge.h"
#include "tests/unit/scheduler-service/planner/random_request.h"

namespace medley::sched::fill_test {
namespace {

constexpr double kBatch = 64, kCompute = 0.8;  // samples, seconds of a layer

// `layers` equal layers on one type whose work does not divide.
model::PlanRequest Equal(int layers, int micro_batches) {
  model::PlanRequest request;
  request.model.name = "equal";
  for (int l = 0; l < layers; ++l) {
    model::Layer& layer = request.model.layers.emplace_back();
    layer.name = fmt::format("l{}", l);
    layer.output_bytes = 1000;
    layer.profiles.push_back({.resource_type = "cpu", .compute_seconds = kCompute});
  }
  request.training = {.profile_batch_size = kBatch, .samples_per_epoch = 1e6, .micro_batches = micro_batches};
  request.resources.push_back({.name = "cpu", .price_per_unit_hour = 1, .limit = 100});
  return request;
}

std::vector<StageChoice> OneLayerEach(int layers) {
  std::vector<StageChoice> stages;
  for (int l = 0; l < layers; ++l) stages.push_back({l, l, 0, 1});
  return stages;
}

double Simulated(const Problem& problem, const std::vector<StageChoice>& stages) {
  return SimulatedThroughput(BuildExecutionPlan(problem, stages), problem.request(), {});
}

TEST(FillTest, EqualStagesTakeWhatTheSimulatorSays) {
  for (const int micro_batches : {1, 2, 4, 16}) {
    for (const int stages : {1, 2, 3, 5}) {
      SCOPED_TRACE(fmt::format("{} stages, {} micro-batches", stages, micro_batches));
      const Problem problem = Problem::Compile(Equal(stages, micro_batches)).value();
      const double slots = micro_batches + stages - 1;
      const double expected = kBatch / (kCompute * slots / micro_batches);
      const double throughput = ScoreOf(problem, OneLayerEach(stages)).throughput;
      EXPECT_NEAR(throughput, expected, 1e-9 * expected);
      EXPECT_NEAR(Simulated(problem, OneLayerEach(stages)), throughput, 1e-9 * throughput);
    }
  }
}

TEST(FillTest, StagesReportTheSecondsThatTheyWork) {
  const Problem problem = Problem::Compile(Equal(3, 4)).value();
  const Evaluation evaluation = Evaluate(problem, OneLayerEach(3));
  for (const model::ProvisionedStage& stage : evaluation.plan.stages) {
    EXPECT_DOUBLE_EQ(stage.compute_seconds, kCompute);
    EXPECT_DOUBLE_EQ(stage.throughput, evaluation.plan.throughput);
  }
}

TEST(FillTest, CountsOnlyKnownMicroBatchesOfSynchronousSteps) {
  const auto throughput = [](const model::PlanRequest& request) {
    return ScoreOf(Problem::Compile(request).value(), OneLayerEach(3)).throughput;
  };
  const double endless = kBatch / kCompute;
  EXPECT_DOUBLE_EQ(throughput(Equal(3, 0)), endless);
  model::PlanRequest asynchronous = Equal(3, 4);
  asynchronous.planner.schedule = model::ScheduleKind::kAsync1F1B;
  EXPECT_DOUBLE_EQ(throughput(asynchronous), endless);
  EXPECT_DOUBLE_EQ(throughput(Equal(3, 4)), endless * 4 / 6);
}

// Synchronisation is done once a step: it does not fill, but copies do.
TEST(FillTest, SynchronisationDoesNotFill) {
  model::PlanRequest request = Equal(2, 4);
  for (model::Layer& layer : request.model.layers) {
    layer.profiles[0].compute_seconds = 0.01;
    layer.profiles[0].sync_seconds = 2;
    layer.profiles[0].transfer_seconds = 1;
  }
  const Problem problem = Problem::Compile(request).value().ForStages(2);
  EXPECT_DOUBLE_EQ(problem.Terms(0, 0, 0).CommSeconds(1), 2 + 1 * 5.0 / 4);
  EXPECT_DOUBLE_EQ(problem.Terms(1, 1, 0).CommSeconds(1), 2);
}

// Each end sends and receives a message for each micro-batch.
TEST(FillTest, MessagesTakeTheProcessorOfBothEnds) {
  model::PlanRequest request = Equal(3, 4);
  request.resources[0].processor_seconds_per_message = 1e-3;
  request.resources[0].processor_seconds_per_byte = 1e-8;
  const Problem problem = Problem::Compile(request).value();
  const double messages = 2 * 4 * 1e-3, bytes = 2 * kBatch * 1000 * 1e-8;
  for (const int units : {1, 4}) {
    const double end = messages + bytes / units;
    EXPECT_NEAR(problem.Terms(0, 2, 0).ComputeSeconds(units), 3 * kCompute, 1e-12);
    EXPECT_NEAR(problem.Terms(0, 1, 0).ComputeSeconds(units), 2 * kCompute + end, 1e-12);
    EXPECT_NEAR(problem.Terms(1, 1, 0).ComputeSeconds(units), kCompute + 2 * end, 1e-12);
    EXPECT_NEAR(problem.Terms(1, 2, 0).ComputeSeconds(units), 2 * kCompute + end, 1e-12);
  }
}

// A stage with few parameters computes with less between two messages, which then cost less.
TEST(FillTest, MessagesOfSmallStagesCostLess) {
  model::PlanRequest request = Equal(3, 4);
  for (model::Layer& layer : request.model.layers) layer.weight_bytes = 1e6;
  model::Resource& unit = request.resources[0];
  unit.processor_seconds_per_message = 1e-3;
  unit.processor_seconds_per_message_in_a_row = 2e-4;
  unit.computed_bytes_per_message = 4e6;
  const auto end = [&](double megabytes) { return 2 * 4 * (2e-4 + 8e-4 * megabytes / 4); };
  const Problem problem = Problem::Compile(request).value();
  EXPECT_NEAR(problem.Terms(0, 0, 0).ComputeSeconds(1), kCompute + end(2), 1e-12) << "parameters and gradients";
  EXPECT_NEAR(problem.Terms(1, 1, 0).ComputeSeconds(1), kCompute + 2 * end(1), 1e-12) << "of twice as many messages";
  EXPECT_NEAR(problem.Terms(0, 1, 0).ComputeSeconds(1), 2 * kCompute + end(4), 1e-12);
  EXPECT_NEAR(problem.Terms(0, 2, 0).ComputeSeconds(1), 3 * kCompute, 1e-12);
  request.resources[0].computed_bytes_per_message = 1e6;
  EXPECT_NEAR(Problem::Compile(request).value().Terms(0, 0, 0).ComputeSeconds(1), kCompute + 8e-3, 1e-12)
      << "no more than amid computation";
  request.model.layers[0].sparse = true;
  EXPECT_NEAR(Problem::Compile(request).value().Terms(0, 0, 0).ComputeSeconds(1), kCompute + end(0), 1e-12)
      << "of a table few rows are used";
}

// The simulator lets a message wait for its receiver, so it agrees only nearly.
TEST(FillTest, MessagesAreNearlyThoseOfTheSimulator) {
  for (const int micro_batches : {4, 16}) {
    model::PlanRequest request = Equal(2, micro_batches);
    request.resources[0].processor_seconds_per_message = 0.005;
    const auto compare = [&] {
      const Problem problem = Problem::Compile(request).value();
      const double closed = ScoreOf(problem, OneLayerEach(2)).throughput;
      EXPECT_NEAR(Simulated(problem, OneLayerEach(2)), closed, 0.05 * closed) << micro_batches << " micro-batches";
      return closed;
    };
    const double before = compare();
    for (model::Layer& layer : request.model.layers) layer.weight_bytes = 1e6;
    request.resources[0].processor_seconds_per_message_in_a_row = 0.001;
    request.resources[0].computed_bytes_per_message = 8e6;
    EXPECT_GT(compare(), before);
  }
}

// Equal stages wait for one another over equal links: how often in a step, compared with the simulator.
TEST(FillTest, StagesWaitForCopiesAsOftenAsInTheSimulator) {
  const auto waits = [](double throughput, int micro_batches, int stages, double latency) {
    const double slots = micro_batches + stages - 1;
    const double hop = 2 * latency + 0.16 / micro_batches;  // of a micro-batch and its gradient
    return (kBatch / throughput - slots * kCompute / micro_batches) / hop;
  };
  int compared = 0;
  for (const auto schedule : {model::ScheduleKind::kSync1F1B, model::ScheduleKind::kGpipe}) {
    for (const int micro_batches : {1, 2, 4, 5, 8, 16}) {
      for (const int stages : {1, 2, 3, 4, 6}) {
        for (const double latency : {0.0, 0.005}) {
          SCOPED_TRACE(fmt::format("schedule {}, {} micro-batches, {} stages, {} s", static_cast<int>(schedule),
                                   micro_batches, stages, latency));
          model::PlanRequest request = Equal(stages, micro_batches);
          request.planner.schedule = schedule;
          request.links = {{.from = "cpu", .to = "cpu", .latency_seconds = latency, .bytes_per_second = 800'000}};
          const Problem problem = Problem::Compile(request).value();
          const auto plan = OneLayerEach(stages);
          const double closed = waits(ScoreOf(problem, plan).throughput, micro_batches, stages, latency);
          const double simulated = waits(Simulated(problem, plan), micro_batches, stages, latency);
          const bool gpipe = schedule == model::ScheduleKind::kGpipe;
          // Whole micro-batches, of which one may be a sample larger than the others.
          EXPECT_NEAR(closed, simulated, gpipe ? 0.1 : 0.7);
          EXPECT_GE(closed, stages - 1 - 1e-9) << "each boundary is passed once while the pipeline fills";
          ++compared;
        }
      }
    }
  }
  EXPECT_EQ(compared, 120);
}

// More micro-batches never make the cheapest plan more expensive; without their number nothing fills.
TEST(FillTest, MoreMicroBatchesNeverCostMore) {
  const base::FakeClock clock;
  const Budget unlimited(clock, base::SteadyTime::max(), {});
  int strict = 0, fewer_stages = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    model::PlanRequest request = RandomRequest(seed, {});
    double last = 0;
    size_t most_stages = 0;
    for (const int micro_batches : {0, 32, 4, 1}) {
      request.training.micro_batches = micro_batches;
      const auto found = MakeExact()->SolveStages(Problem::Compile(request).value(), 0, unlimited);
      ASSERT_THAT(found, base::IsOk());
      ASSERT_TRUE(found->complete);
      if (!found->best) break;
      EXPECT_GE(found->best->score.cost, last * (1 - 1e-9));
      strict += last > 0 && found->best->score.cost > last * (1 + 1e-9) ? 1 : 0;
      last = found->best->score.cost;
      most_stages = std::max(most_stages, found->best->stages.size());
      fewer_stages += found->best->stages.size() < most_stages ? 1 : 0;
    }
  }
  EXPECT_GE(strict, 20);
  EXPECT_GE(fewer_stages, 10);
}

}  // namespace
}  // namespace medley::sched::fill_test
