// The simulator chooses among the candidates of a question without making any of them worse by its own measure; the
// cost model's choice is that of the planner.
#include "scheduler-service/planner/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planner/planners.h"
#include "tests/unit/scheduler-service/planner/random_request.h"

namespace medley::sched {
namespace {

model::PlanRequest Trainers(uint64_t seed) {
  model::PlanRequest request = RandomRequest(seed, {.most_layers = 6, .most_types = 3, .most_limit = 6});
  request.server_type.clear();
  request.training.micro_batches = 4;
  for (model::Layer& layer : request.model.layers) {
    layer.sparse = false;
    for (model::LayerProfile& profile : layer.profiles) profile.server_seconds = 0;
  }
  return request;
}

TEST(EvaluatorTest, TheCostModelIsThatOfThePlanners) {
  const Problem problem = Problem::Compile(Trainers(2)).value();
  std::vector<StageChoice> stages = WholeModelOn(problem, 0);
  for (StageChoice& stage : stages) stage.units = 2;
  const auto evaluator = MakeEvaluator(model::EvaluatorKind::kCostModel, {});
  const auto score = evaluator->Evaluate(problem, stages);
  ASSERT_THAT(score, base::IsOk());
  EXPECT_EQ(score->cost, ScoreOf(problem, stages).cost);
}

TEST(EvaluatorTest, WhatCannotBeSimulatedHasNoScore) {
  const Problem problem = Problem::Compile(Trainers(2)).value();
  std::vector<StageChoice> stages = WholeModelOn(problem, 0);
  for (StageChoice& stage : stages) stage.units = 90'000;
  const auto evaluator = MakeEvaluator(model::EvaluatorKind::kSimulator, {});
  EXPECT_THAT(evaluator->Evaluate(problem, stages), base::StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(EvaluatorTest, TheSimulatorChoosesOnlyWhatIsCheaperInIt) {
  const base::FakeClock clock;
  const Registry planners = BuiltinPlanners();
  int chosen = 0, others = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    model::PlanRequest request = Trainers(seed);
    request.planner.evaluator = model::EvaluatorKind::kCostModel;
    const auto by_cost = MakePlan(request, {}, planners, clock, {});
    request.planner.evaluator = model::EvaluatorKind::kSimulator;
    const auto by_time = MakePlan(request, {}, planners, clock, {});
    ASSERT_THAT(by_cost, base::IsOk());
    ASSERT_THAT(by_time, base::IsOk());
    ASSERT_EQ(by_cost->plan.has_value(), by_time->plan.has_value());
    if (!by_cost->plan) continue;
    EXPECT_FALSE(by_cost->simulated);
    ASSERT_TRUE(by_time->simulated);
    ++chosen;
    const auto usd = [&](const model::PlanResult& result) {
      const double throughput = SimulatedThroughput(*result.execution_plan, request, {});
      EXPECT_GT(throughput, 0);
      return result.plan->cost_per_hour / throughput;
    };
    // True if the plan keeps the constraints at the simulator's throughput, too.
    const auto simulated_meets = [&](const model::PlanResult& result) {
      const double x = SimulatedThroughput(*result.execution_plan, request, {});
      const double cost = result.plan->cost_per_hour * request.training.TotalSamples() / x / 3600;
      const double budget = request.constraints.budget_usd;
      return x >= Problem::Compile(request)->RequiredThroughput() && (budget <= 0 || cost <= budget * (1 + kTolerance));
    };
    const double simulated = SimulatedThroughput(*by_time->execution_plan, request, {});
    EXPECT_EQ(by_time->simulated->throughput, simulated) << "the figure in the answer is that of its plan";
    EXPECT_EQ(by_time->execution_plan->estimate.simulated_throughput, simulated);
    const double samples = request.training.TotalSamples();
    EXPECT_NEAR(by_time->simulated->cost_usd, by_time->plan->cost_per_hour * samples / simulated / 3600, 1e-6);
    if (by_time->plan == by_cost->plan) continue;
    ++others;
    if (simulated_meets(*by_cost)) {
      EXPECT_LT(usd(*by_time), usd(*by_cost));
    }
    EXPECT_TRUE(simulated_meets(*by_time));
    EXPECT_THAT(by_time->notes, testing::Contains(testing::HasSubstr("the simulator prefers this plan")));
  }
  EXPECT_GT(chosen, 10);
  EXPECT_GT(others, 0);
}

}  // namespace
}  // namespace medley::sched
