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
    const auto by_cost = MakePlan(request, {}, planners, clock, {});
    request.planner.evaluator = model::EvaluatorKind::kSimulator;
    const auto by_time = MakePlan(request, {}, planners, clock, {});
    ASSERT_THAT(by_cost, base::IsOk());
    ASSERT_THAT(by_time, base::IsOk());
    ASSERT_EQ(by_cost->plan.has_value(), by_time->plan.has_value());
    if (!by_cost->plan) continue;
    ++chosen;
    const auto usd = [&](const model::PlanResult& result) {
      const double throughput = SimulatedThroughput(*result.execution_plan, request, {});
      EXPECT_GT(throughput, 0);
      return result.plan->cost_per_hour / throughput;
    };
    if (by_time->plan == by_cost->plan) continue;
    ++others;
    EXPECT_LT(usd(*by_time), usd(*by_cost));
    EXPECT_THAT(by_time->notes, testing::Contains(testing::HasSubstr("the simulator prefers this plan")));
  }
  EXPECT_GT(chosen, 10);
  EXPECT_GT(others, 0);
}

}  // namespace
}  // namespace medley::sched
