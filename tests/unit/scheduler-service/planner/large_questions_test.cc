// Questions with many layers: what planners answer in the same time, whether bounds hold, and the reasons for questions
// without a plan.
#include "tests/unit/scheduler-service/planner/large_questions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/soak.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/plan_result.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/layer_bound.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planner/refining_search.h"
#include "scheduler-service/planner/stage_graph.h"
#include "scheduler-service/planning/budget.h"
#include "tests/unit/scheduler-service/planner/adversarial_request.h"

namespace medley::sched::large_questions_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LargeQuestionsTest : public testing::Test {
 protected:
  const Registry registry_ = BuiltinPlanners();
};

// Every planner of the service; the reproductions have the same test with theirs.
TEST_F(LargeQuestionsTest, NoPlannerIsBetterThanAutoInTheSameProcessorTime) { ExpectAutoIsNotWorse(registry_); }

// The bound of single layers holds for the optimum, and stages that it excludes are in no better plan.
TEST_F(LargeQuestionsTest, TheBoundOfSingleLayersHoldsAndWhatItExcludesIsInNoBetterPlan) {
  int feasible = 0, excluded = 0, tight = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    const Problem problem =
        Problem::Compile(AdversarialRequest(seed, {.boundaries = true, .links = seed % 2 == 0})).value();
    const auto optimum = OptimumOf(problem.request());
    if (!optimum) continue;
    ++feasible;
    const Problem of = problem.ForStages(static_cast<int>(optimum->stages.size()));
    const double rate = optimum->score.hourly / optimum->score.throughput;
    LayerBound bound(of, problem.RequiredThroughput());
    bound.Improve(rate, 100);
    ASSERT_LE(bound.rate(), rate * (1 + 1e-9));
    tight += bound.rate() > 0.8 * rate ? 1 : 0;
    for (const StageChoice& s : optimum->stages) {
      double more = 0;
      for (int layer = s.first; layer <= s.last; ++layer) more += bound.Excess(layer, s.type);
      ASSERT_LE(bound.rate() + more, rate * (1 + 1e-9));
      ASSERT_FALSE(bound.Excludes(more, rate * (1 + 1e-6)));
    }
    for (int t = 0; t < problem.types(); ++t) {
      for (int layer = 0; layer < problem.layers(); ++layer)
        excluded += bound.Excludes(bound.Excess(layer, t), rate) ? 1 : 0;
    }
    ASSERT_TRUE(WhyLayersDoNotFit(problem).empty());
    ASSERT_GE(MostThroughput(problem), optimum->score.throughput * (1 - 1e-9));
  }
  std::printf("seeds 1..400: %d feasible, %d bounds within 20 %%, %d layers excluded from types\n", feasible, tight,
              excluded);
  EXPECT_GE(feasible, 200);
  EXPECT_GE(excluded, 200);
  EXPECT_GE(tight, 20);
}

// Where the whole search is possible, too, what the refining search finds and proves is compared with it.
TEST_F(LargeQuestionsTest, TheRefiningSearchProvesWhatTheWholeSearchProves) {
  int proven = 0, feasible = 0;
  const int seeds = base::Rounds(4, 12);
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(seeds); ++seed) {
    for (const int micro_batches : {0, 8}) {
      SCOPED_TRACE(fmt::format("seed {}, {} micro-batches", seed, micro_batches));
      const LargeOptions options{
          .layers = 90, .types = 6, .fill = 0.4 + 0.03 * static_cast<double>(seed), .micro_batches = micro_batches};
      const Problem problem = Problem::Compile(LargeQuestion(seed, options)).value();
      ASSERT_TRUE(HasManyStages(problem));
      const ProcessorClock clock;
      const auto refined =
          MakeExact()->SolveStages(problem, 1, Budget(clock, clock.Steady() + base::FromSeconds(5), {})).value();
      KnownBest whole;
      const double left = SearchPlans(problem, Budget(clock, clock.Steady() + base::FromSeconds(5), {}), whole,
                                      SearchOrder::kLeastBoundFirst, 8);
      if (refined.best) {
        ++feasible;
        EXPECT_TRUE(KeepsConstraints(problem, refined.best->stages, refined.best->score));
        EXPECT_LE(*refined.lower_bound, refined.best->score.cost);
      }
      if (refined.best && whole.best) {
        EXPECT_LE(*refined.lower_bound, whole.best->score.cost * (1 + 1e-9));
      }
      if (!refined.complete || left < kInfinity) continue;
      ++proven;
      ASSERT_EQ(refined.best.has_value(), whole.best.has_value());
      if (!refined.best) continue;
      EXPECT_NEAR(refined.best->score.cost, whole.best->score.cost, 1e-9 * whole.best->score.cost);
    }
  }
  std::printf("%d questions: %d with plans, %d proven by both\n", 2 * seeds, feasible, proven);
  EXPECT_GE(proven, 2 * seeds / 3);
  EXPECT_GE(feasible, seeds);
}

// 4,096 layers are the most that a request may have.
TEST_F(LargeQuestionsTest, TheLargestModelHasAPlanAndABoundWithinItsTime) {
  const Problem problem = Problem::Compile(LargeQuestion(1, {.layers = 4096, .types = 64, .fill = 0.05})).value();
  const auto answer = AskInTime(*registry_.Find("auto", Supply::kUnits), problem, 4);
  ASSERT_THAT(answer, base::IsOk());
  EXPECT_LT(answer->usd, kInfinity);
  EXPECT_GT(answer->lower_bound, 0);
  EXPECT_LE(answer->lower_bound, answer->usd);
  std::printf("4,096 layers x 64 types: %.4g USD, bound %.4g, %.2f s of processor time\n", answer->usd,
              answer->lower_bound, answer->seconds);
}

// What a search does before it looks at stages ends with its budget, too: 60 improved bounds of 400 layers x 64 types
// take a quarter of a second.
TEST_F(LargeQuestionsTest, BoundsAndCountsEndWithTheBudget) {
  const Problem problem = Problem::Compile(LargeQuestion(3, {.layers = 300, .types = 48, .fill = 0.2})).value();
  base::FakeClock clock;
  const Budget left(clock, clock.Steady() + base::seconds(1), {}), spent(clock, clock.Steady(), {});
  const auto rate = [&](const Budget* budget) {
    LayerBound bound(problem, problem.RequiredThroughput());
    const double before = bound.rate();
    bound.Improve(kInfinity, 60, budget);
    return bound.rate() / before;
  };
  EXPECT_GT(rate(nullptr), 1);
  EXPECT_EQ(rate(&left), rate(nullptr));
  EXPECT_EQ(rate(&spent), 1);
  const auto count = [&](const Budget* budget) {
    return StageGraph::Count(problem, {.budget = budget}, kMostPossibleStages * 100);
  };
  EXPECT_EQ(count(&left), count(nullptr));
  EXPECT_LE(count(nullptr), kMostPossibleStages * 100);
  EXPECT_GT(count(&spent), kMostPossibleStages * 100);
}

TEST_F(LargeQuestionsTest, AnUnprovenAnswerSaysWhatWasLeftOutAndItsGap) {
  model::PlanRequest request = LargeQuestion(2, {.layers = 300, .types = 48, .fill = 0.2});
  request.planner.name = "auto";
  request.planner.time_budget_seconds = 1;
  const ProcessorClock clock;
  const auto result = MakePlan(request, {}, registry_, clock, {});
  ASSERT_THAT(result, base::IsOk());
  ASSERT_TRUE(result->plan.has_value());
  ASSERT_GT(*result->gap, 0);
  EXPECT_GT(*result->lower_bound_usd, 0);
  EXPECT_LT(*result->lower_bound_usd, result->plan->cost_usd);
  EXPECT_THAT(result->notes, testing::Contains(HasSubstr("the lower bound holds for all plans")));
}

constexpr double kFill = 0.3;

struct Impossible {
  const char* constraint;
  void (*make)(model::PlanRequest& request);
};

// A planner that only searches would spend its time.
TEST_F(LargeQuestionsTest, EveryPlannerSaysAtOnceWhyAQuestionHasNoPlan) {
  const Impossible cases[] = {
      {"minThroughput", [](model::PlanRequest& r) { r.constraints.min_throughput *= 1.3 / kFill; }},
      {"memory", [](model::PlanRequest& r) { r.model.layers[5].weight_bytes = 1e12; }},
      {"maxCostPerHour", [](model::PlanRequest& r) { r.constraints.max_cost_per_hour = 0.01; }},
      {"budget", [](model::PlanRequest& r) { r.constraints.budget_usd = 1e-3; }},
      {"deadline",
       [](model::PlanRequest& r) {
         r.constraints.deadline_seconds = r.training.TotalSamples() / r.constraints.min_throughput / 1.3 * kFill;
         r.constraints.min_throughput = 0;
       }},
      {"maxUnits", [](model::PlanRequest& r) { r.constraints.max_units = 3; }},
      {"limit",
       [](model::PlanRequest& r) {
         for (auto& one : r.resources) one.limit = std::min(one.limit, 1);
       }},
  };
  std::vector<double> all;
  for (const auto& [layers, types] : {std::pair{8, 4}, {400, 5}, {200, 64}}) {
    for (const Impossible& impossible : cases) {
      model::PlanRequest request = LargeQuestion(3, {.layers = layers, .types = types, .fill = kFill});
      for (auto& r : request.resources) r.memory_bytes = std::max(r.memory_bytes, 1e10);
      impossible.make(request);
      for (const Planner* planner : registry_.Of(Supply::kUnits)) {
        if (planner->name() == "brute-force") continue;  // for small models only
        SCOPED_TRACE(fmt::format("{} layers, {} types, {}, {}", layers, types, impossible.constraint, planner->name()));
        request.planner.name = std::string(planner->name());
        const ProcessorClock clock;
        const base::SteadyTime begin = clock.Steady();
        const auto result = MakePlan(request, {}, registry_, clock, {});
        const double seconds = base::ToSeconds(clock.Steady() - begin);
        ASSERT_THAT(result, base::IsOk());
        ASSERT_FALSE(result->plan.has_value());
        ASSERT_FALSE(result->reasons.empty());
        EXPECT_NE(result->reasons[0].constraint, "planner");
        EXPECT_THAT(result->reasons,
                    testing::Contains(testing::Field(&model::Reason::constraint, impossible.constraint)));
        EXPECT_LT(seconds, 1) << "of 60 that it may take";
        all.push_back(seconds);
      }
    }
  }
  std::ranges::sort(all);
  std::printf("%zu answers: median %.1f ms, 90 %% %.1f ms, most %.1f ms of processor time\n", all.size(),
              all[all.size() / 2] * 1e3, all[all.size() * 9 / 10] * 1e3, all.back() * 1e3);
}

TEST_F(LargeQuestionsTest, AQuestionThatMayHaveAPlanIsNotCalledInfeasible) {
  int planned = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const model::PlanRequest request = AdversarialRequest(seed, {.boundaries = true, .links = true});
    const Problem problem = Problem::Compile(request).value();
    const base::FakeClock clock;
    const bool infeasible = CheckFeasible(problem, Budget(clock, base::SteadyTime::max(), {})).infeasible;
    ASSERT_EQ(infeasible, !OptimumOf(request).has_value()) << "seed " << seed;
    planned += infeasible ? 0 : 1;
  }
  EXPECT_GE(planned, 150);
  EXPECT_LE(planned, 290);
}

}  // namespace
}  // namespace medley::sched::large_questions_test
