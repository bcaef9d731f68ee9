// Properties of all planners that search: their plans are valid and never better than the optimum, the same seed gives
// the same result, and they handle edge cases. A test instantiates them with its planners.
#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planner/planners.h"
#include "tests/unit/scheduler-service/planner/random_request.h"

namespace medley::sched {

inline const model::OptionValues kQuickerRecurrent = {{"rounds", 3.}, {"samplesPerRound", 4.}, {"hiddenUnits", 12.}};
// Small options, because the properties do not depend on the duration of the search.
inline const model::OptionValues kQuickRecurrent = {{"rounds", 60.}, {"samplesPerRound", 24.}, {"hiddenUnits", 12.}};

inline model::PlanRequest Quick(model::PlanRequest request) {
  request.planner.options = kQuickRecurrent;
  return request;
}

struct SearchCase {
  std::string planner;
  std::function<std::unique_ptr<StagePlanner>()> make;
  model::OptionValues quick;    // as kQuickRecurrent
  model::OptionValues quicker;  // for large models
  std::string number;           // an option that must be at least 1
};

class SearchPlannersTest : public testing::TestWithParam<SearchCase> {
 protected:
  const StagePlanner& planner() const { return *planner_; }
  static model::PlanRequest Small(model::PlanRequest request) {
    request.planner.options = GetParam().quick;
    return request;
  }
  absl::StatusOr<Solution> Solve(const Problem& problem, uint64_t seed = 1) {
    return planner().SolveStages(problem, seed, Budget(clock_, base::SteadyTime::max(), {}));
  }
  Solution SolveOk(const model::PlanRequest& request) {
    const auto problem = Problem::Compile(request);
    EXPECT_THAT(problem, base::IsOk());
    auto solution = Solve(*problem);
    EXPECT_THAT(solution, base::IsOk());
    return solution.value();
  }
  base::FakeClock clock_;
  const std::unique_ptr<StagePlanner> planner_ = GetParam().make();
};

// A name that googletest accepts.
inline std::string SearchCaseName(const testing::TestParamInfo<SearchCase>& param) {
  std::string name = param.param.planner;
  std::erase(name, '-');
  return name;
}

inline model::PlanRequest Large(int layers, int types) {
  model::PlanRequest request = RandomRequest(3, {.most_layers = 1, .most_types = 1});
  request.constraints = {};
  request.constraints.min_units = 1;
  request.server_type.clear();
  request.resources.clear();
  model::Layer layer;
  layer.kind = "FULLY_CONNECTED";
  layer.weight_bytes = 1e4;
  base::Rng rng(9);
  for (int t = 0; t < types; ++t) {
    request.resources.push_back({fmt::format("t{}", t), model::ResourceClass::kGpu, rng.Uniform(0.5, 2), 100});
    layer.profiles.push_back(RandomProfile(rng, fmt::format("t{}", t), 1, false));
    layer.profiles.back().compute_seconds = rng.Uniform(0.01, 0.1);
  }
  request.model.layers.assign(static_cast<size_t>(layers), layer);
  return request;
}

TEST_P(SearchPlannersTest, PlansAreValidAndNeverBelowTheOptimum) {
  int feasible = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto problem = Problem::Compile(Small(RandomRequest(seed, {.most_layers = 7})));
    ASSERT_THAT(problem, base::IsOk());
    const auto truth = MakeExact()->SolveStages(*problem, 0, Budget(clock_, base::SteadyTime::max(), {}));
    const auto found = Solve(*problem, seed);
    ASSERT_THAT(found, base::IsOk());
    if (!found->best) continue;
    ++feasible;
    ASSERT_TRUE(truth->best.has_value()) << "a plan where none is";
    const Evaluation evaluation = Evaluate(*problem, found->best->stages);
    ASSERT_TRUE(evaluation.violations.empty()) << evaluation.violations[0].message;
    ASSERT_DOUBLE_EQ(evaluation.plan.cost_usd, found->best->score.cost);
    ASSERT_GE(found->best->score.cost, truth->best->score.cost * (1 - 1e-9));
  }
  EXPECT_GE(feasible, 10);
}

TEST_P(SearchPlannersTest, SameSeedSamePlanAndPolicy) {
  model::PlanRequest request = Small(Large(9, 3));
  request.planner.policy.return_policy = true;
  const auto problem = Problem::Compile(request);
  const auto a = Solve(*problem, 5), b = Solve(*problem, 5);
  ASSERT_TRUE(a.ok() && b.ok() && a->best && b->best);
  EXPECT_EQ(a->best->stages, b->best->stages);
  EXPECT_EQ(a->policy, b->policy);
}

TEST_P(SearchPlannersTest, OneLayerOneType) {
  const Solution solution = SolveOk(Small(Large(1, 1)));
  ASSERT_TRUE(solution.best.has_value());
  EXPECT_EQ(solution.best->stages.size(), 1U);
}

TEST_P(SearchPlannersTest, InfeasibleHasNoPlan) {
  model::PlanRequest request = Small(Large(4, 2));
  request.constraints.budget_usd = 1e-9;
  EXPECT_FALSE(SolveOk(request).best.has_value());
}

TEST_P(SearchPlannersTest, ASpentBudgetEndsItAtOnce) {
  const auto problem = Problem::Compile(Small(Large(16, 4)));
  const auto solution = planner().SolveStages(*problem, 1, Budget(clock_, clock_.Steady(), {}));
  ASSERT_THAT(solution, base::IsOk());
  EXPECT_FALSE(solution->complete);
}

TEST_P(SearchPlannersTest, ManyTypesAndManyLayers) {
  model::PlanRequest request = Small(Large(1000, 64));
  request.planner.options = GetParam().quicker;
  request.planner.time_budget_seconds = 20;
  const auto problem = Problem::Compile(request);
  ASSERT_THAT(problem, base::IsOk());
  ASSERT_THAT(Solve(*problem), base::IsOk());
}

TEST_P(SearchPlannersTest, OptionsOutOfRangeAreErrors) {
  model::PlanRequest request = Small(Large(4, 2));
  for (const model::OptionValue& wrong :
       {model::OptionValue(0.), model::OptionValue(1.5), model::OptionValue("many")}) {
    request.planner.options = {{GetParam().number, wrong}};
    ASSERT_THAT(
        Solve(*Problem::Compile(request)),
        base::StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("planner.options." + GetParam().number + ": must be an integer in [1, ")));
  }
  request.planner.options = {{GetParam().number + "s", 3.}};
  EXPECT_THAT(Solve(*Problem::Compile(request)),
              base::StatusIs(absl::StatusCode::kInvalidArgument,
                             testing::HasSubstr("planner " + GetParam().planner +
                                                " has no such option; did you mean `" + GetParam().number + "`?")));
}

}  // namespace medley::sched
