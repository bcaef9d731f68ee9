// The least USD per hour and the fewest seconds to the end, compared with all plans of stages.
#include "scheduler-service/planner/objectives.h"
#include "common/model/plan_result.h"
#include "scheduler-service/planner/builtin.h"

#include <gmock/gmock.h>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/planner/plan.h"
#include "tests/unit/scheduler-service/planner/adversarial_request.h"
#include "tests/unit/scheduler-service/planner/all_plans.h"
#include "tests/unit/scheduler-service/planner/scale_request.h"

namespace medley::sched {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

class ObjectivesTest : public testing::Test {
 protected:
  absl::StatusOr<model::PlanResult> Plan(const model::PlanRequest& request) const {
    return MakePlan(request, {}, BuiltinPlanners(), clock_, {});
  }

  base::FakeClock clock_;
  const Budget unlimited_{clock_, base::SteadyTime::max(), {}};
};

TEST_F(ObjectivesTest, AreTheBestOfAllFeasiblePlans) {
  int feasible = 0, infeasible = 0, filling = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    // Every other one has costs of boundaries: messages, and pipelines that fill; every third one has unlike links.
    model::PlanRequest request = AdversarialRequest(
        seed,
        {.most_layers = 4, .most_types = 3, .most_limit = 6, .boundaries = seed % 2 == 0, .links = seed % 3 == 0});
    for (model::Resource& r : request.resources) r.limit = std::min(r.limit, 6);
    const auto problem = Problem::Compile(request);
    ASSERT_THAT(problem, IsOk());
    const std::vector<Provisioned> all = AllPlans(*problem);
    for (const model::Objective objective : {model::Objective::kCostPerHour, model::Objective::kTime}) {
      double least = kInfinity;
      for (const Provisioned& plan : all) least = std::min(least, ValueOf(*problem, plan, objective));
      const auto found = SolveForObjective(*problem, objective, unlimited_);
      ASSERT_THAT(found, IsOk());
      ASSERT_TRUE(found->complete);
      ASSERT_EQ(found->best.has_value(), !all.empty());
      if (all.empty()) {
        ++infeasible;
        continue;
      }
      ++feasible;
      filling += problem->fills() && found->best->stages.size() > 1 ? 1 : 0;
      const double value = ValueOf(*problem, *found->best, objective);
      EXPECT_NEAR(value, least, 1e-8 * least);
      EXPECT_NEAR(*found->lower_bound, least, 1e-8 * least);
      EXPECT_TRUE(Evaluate(*problem, found->best->stages).violations.empty());
    }
  }
  std::printf("%d feasible, %d infeasible\n", feasible, infeasible);
  EXPECT_GE(feasible, 120);
  EXPECT_GE(infeasible, 10);
  EXPECT_GE(filling, 5);
}

TEST_F(ObjectivesTest, AnswersOrderEachOther) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    model::PlanRequest request = ScaleRequest(seed, {.layers = 10, .types = 4});
    const auto cheapest = Plan(request);
    ASSERT_THAT(cheapest, IsOk());
    ASSERT_TRUE(cheapest->plan);
    request.objective = model::Objective::kTime;
    const auto fastest = Plan(request);
    request.objective = model::Objective::kCostPerHour;
    const auto per_hour = Plan(request);
    ASSERT_THAT(fastest, IsOk());
    ASSERT_THAT(per_hour, IsOk());
    ASSERT_TRUE(fastest->plan && per_hour->plan);
    EXPECT_LE(fastest->plan->execution_seconds, cheapest->plan->execution_seconds * (1 + 1e-9));
    EXPECT_GE(fastest->plan->cost_usd, cheapest->plan->cost_usd * (1 - 1e-9));
    EXPECT_LE(per_hour->plan->cost_per_hour, cheapest->plan->cost_per_hour * (1 + 1e-9));
    EXPECT_FALSE(fastest->lower_bound_usd);
    EXPECT_NEAR(fastest->lower_bound_seconds.value_or(0), fastest->plan->execution_seconds,
                1e-9 * fastest->plan->execution_seconds);
    EXPECT_NEAR(per_hour->lower_bound_usd_per_hour.value_or(0), per_hour->plan->cost_per_hour, 1e-9);
    EXPECT_EQ(fastest->gap, 0);
    // A budget between both costs: a plan that is faster than the cheapest, and keeps it.
    request.objective = model::Objective::kTime;
    request.constraints.budget_usd = (cheapest->plan->cost_usd + fastest->plan->cost_usd) / 2;
    const auto within = Plan(request);
    ASSERT_TRUE(within.ok() && within->plan);
    EXPECT_LE(within->plan->cost_usd, request.constraints.budget_usd * (1 + 1e-9));
    EXPECT_LE(within->plan->execution_seconds, cheapest->plan->execution_seconds * (1 + 1e-9));
    // Half of what the cheapest plan costs: infeasible, with the reason.
    request.constraints.budget_usd = cheapest->plan->cost_usd / 2;
    const auto none = Plan(request);
    ASSERT_THAT(none, IsOk());
    ASSERT_FALSE(none->plan);
    ASSERT_FALSE(none->reasons.empty());
    EXPECT_EQ(none->reasons.back().constraint, "budget");
  }
}

TEST_F(ObjectivesTest, OtherPlannersSayWhatTheyMinimise) {
  model::PlanRequest request = ScaleRequest(1, {.layers = 4, .types = 2});
  request.objective = model::Objective::kTime;
  request.planner.name = "greedy";
  EXPECT_THAT(Plan(request), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("planner greedy minimises USD; the least USD per hour and")));
}

// Replicas that differ hold the whole model: one stage, of as many units as the objective wants.
TEST_F(ObjectivesTest, ReplicasThatDifferHaveTheSameObjectives) {
  model::PlanRequest request = ScaleRequest(1, {.layers = 4, .types = 2, .min_throughput = 1});
  for (model::Layer& layer : request.model.layers) {
    for (model::LayerProfile& times : layer.profiles) times.server_seconds = 0;
  }
  request.planner.sync.mode = model::SyncMode::kPercentage;
  request.planner.sync.fraction = 0.5;
  request.objective = model::Objective::kCostPerHour;
  const auto least = Plan(request);
  ASSERT_THAT(least, IsOk());
  ASSERT_TRUE(least->plan);
  request.objective = model::Objective::kTime;
  const auto fastest = Plan(request);
  ASSERT_TRUE(fastest.ok() && fastest->plan);
  EXPECT_EQ(fastest->plan->stages.size(), 1U);
  EXPECT_GE(fastest->plan->throughput, least->plan->throughput);
  EXPECT_GE(fastest->plan->cost_per_hour, least->plan->cost_per_hour);
  EXPECT_GT(fastest->plan->stages[0].units, least->plan->stages[0].units);
}

}  // namespace
}  // namespace medley::sched
