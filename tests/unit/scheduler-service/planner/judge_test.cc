// The simulator chooses among the candidates of a question without making any of them worse by its own measure; the
// cost model's choice is that of the planner.
#include "scheduler-service/planning/judge.h"
#include "common/model/plan_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/execution_plan.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planning/stages.h"
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

// One stage of the whole model on the first type.
Provisioned OneStageOf(const Problem& problem, int units) {
  std::vector<StageChoice> stages = WholeModelOn(problem, 0);
  stages[0].units = units;
  const Score score = ScoreOf(problem, stages);
  return {std::move(stages), score};
}

TEST(JudgeTest, TheClosedFormIsThatOfThePlanners) {
  const Question question = Question::Compile(Trainers(2)).value();
  const Provisioned plan = OneStageOf(question.units(), 2);
  const auto judge = MakeClosedForm(question);
  const auto figures = judge->Of(BuildExecutionPlan(question.units(), plan.stages));
  ASSERT_THAT(figures, base::IsOk());
  EXPECT_EQ(*figures, FiguresOf(question.units(), plan.stages, plan.score));
  EXPECT_EQ(figures->usd, plan.score.cost);
  EXPECT_NEAR(figures->seconds, question.samples() / plan.score.throughput, 1e-12);
  EXPECT_EQ(judge->judged(), 1);
}

TEST(JudgeTest, BothJudgesGiveSecondsAndUsd) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const Question question = Question::Compile(Trainers(seed)).value();
    if (!question.units().Allowed(0, question.units().layers() - 1, 0)) continue;
    const model::ExecutionPlan plan = BuildExecutionPlan(question.units(), OneStageOf(question.units(), 1).stages);
    const auto closed = MakeClosedForm(question)->Of(plan), simulated = MakeSimulator(question, {})->Of(plan);
    ASSERT_THAT(closed, base::IsOk());
    ASSERT_THAT(simulated, base::IsOk());
    EXPECT_EQ(simulated->usd_per_hour, closed->usd_per_hour) << "prices do not depend on time";
    // One unit has nothing to synchronise, which the closed form counts where it takes longer than to compute.
    EXPECT_LE(simulated->seconds, closed->seconds * 1.01);
    EXPECT_GT(simulated->seconds, 0);
    EXPECT_NEAR(simulated->usd / closed->usd, simulated->seconds / closed->seconds, 1e-9);
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

TEST(JudgeTest, WhatCannotBeJudgedIsAnError) {
  const Question question = Question::Compile(Trainers(2)).value();
  model::ExecutionPlan plan = BuildExecutionPlan(question.units(), OneStageOf(question.units(), 90'000).stages);
  EXPECT_THAT(MakeSimulator(question, {})->Of(plan), base::StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(MakeClosedForm(question)->Within(plan), base::StatusIs(absl::StatusCode::kFailedPrecondition));
  const auto refused = [&](auto change) {
    model::ExecutionPlan other = plan;
    change(other);
    EXPECT_THAT(MakeClosedForm(question)->Of(other), base::StatusIs(absl::StatusCode::kInvalidArgument));
  };
  refused([](auto& p) { p.stages.clear(); });
  refused([](auto& p) { p.stages[0].groups[0].pool = "of another request"; });
  refused([](auto& p) { p.stages[0].groups[0].units = 0; });
  refused([](auto& p) { p.stages[0].groups.push_back(p.stages[0].groups[0]); });
  refused([](auto& p) { p.stages[0].operations[0].first = 1; });
  refused([](auto& p) { p.stages[0].operations[0].end += 1; });
  refused([](auto& p) { p.stages.push_back(p.stages[0]); });
}

TEST(JudgeTest, TheSimulatorChoosesOnlyWhatIsCheaperInIt) {
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

// What the objective minimises, by the simulator.
double SimulatedValue(const model::PlanResult& result, const model::PlanRequest& request) {
  const double throughput = SimulatedThroughput(*result.execution_plan, request, {});
  const double seconds = request.training.TotalSamples() / throughput;
  return request.objective == model::Objective::kTime ? seconds : result.plan->cost_per_hour;
}

TEST(JudgeTest, TheSimulatorHasTheLastWordForEveryObjective) {
  const base::FakeClock clock;
  const Registry planners = BuiltinPlanners();
  for (const model::Objective objective : {model::Objective::kTime, model::Objective::kCostPerHour}) {
    SCOPED_TRACE(static_cast<int>(objective));
    int compared = 0, others = 0, left = 0;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      SCOPED_TRACE(seed);
      model::PlanRequest request = Trainers(seed);
      request.objective = objective;
      request.planner.evaluator = model::EvaluatorKind::kCostModel;
      const auto closed = MakePlan(request, {}, planners, clock, {});
      request.planner.evaluator = model::EvaluatorKind::kSimulator;
      const auto simulated = MakePlan(request, {}, planners, clock, {});
      ASSERT_THAT(closed, base::IsOk());
      ASSERT_THAT(simulated, base::IsOk());
      ASSERT_EQ(closed->plan.has_value(), simulated->plan.has_value());
      EXPECT_EQ(closed->judge, closed->plan ? "closed form" : "");
      if (!closed->plan) {
        EXPECT_EQ(simulated->judge, "");
        continue;
      }
      // Where no candidate keeps the constraints in the simulator, the closed form has the last word.
      const bool none = std::ranges::any_of(simulated->notes, [](const std::string& note) {
        return note.find("keeps the constraints: the plan is the best of the cost model") != std::string::npos;
      });
      EXPECT_EQ(simulated->judge, none ? "closed form" : "simulator");
      left += none ? 1 : 0;
      ++compared;
      ASSERT_TRUE(simulated->simulated);
      EXPECT_GE(simulated->simulated->candidates, 1);
      EXPECT_FALSE(closed->simulated);
      // The bound is that of the closed form, whose own choice meets it.
      EXPECT_NEAR(closed->gap.value(), 0, 1e-9);
      EXPECT_GE(simulated->gap.value(), 0);
      const double x = SimulatedThroughput(*simulated->execution_plan, request, {});
      EXPECT_EQ(simulated->simulated->throughput, x) << "the figure in the answer is that of its plan";
      if (simulated->plan == closed->plan) continue;
      ++others;
      EXPECT_GE(x, Problem::Compile(request)->RequiredThroughput());
      EXPECT_THAT(simulated->notes, testing::Contains(testing::HasSubstr("the simulator prefers this plan")));
      // Another plan is better in the simulator, or the one of the closed form breaks a constraint there.
      const double of_closed = SimulatedThroughput(*closed->execution_plan, request, {});
      const double usd = closed->plan->cost_per_hour * request.training.TotalSamples() / of_closed / 3600;
      const double budget = request.constraints.budget_usd;
      const bool keeps = of_closed >= Problem::Compile(request)->RequiredThroughput() &&
                         (budget <= 0 || usd <= budget * (1 + kTolerance));
      if (keeps) {
        EXPECT_LE(SimulatedValue(*simulated, request), SimulatedValue(*closed, request) * (1 + 1e-9));
      }
    }
    std::printf("objective %d: %d compared, %d with another plan, %d left to the closed form\n",
                static_cast<int>(objective), compared, others, left);
    EXPECT_GT(compared, 10);
    EXPECT_GT(others, 0);
  }
}

}  // namespace
}  // namespace medley::sched
