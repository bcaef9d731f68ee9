// The choice between parameter servers and rows in the trainers.
#include "scheduler-service/planner/rows_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "common/base/testing/status_matchers.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/execution_plan.h"
#include "scheduler-service/planner/plan.h"
#include "tests/unit/scheduler-service/planner/adversarial_request.h"

namespace medley::sched::rows_place_test {
namespace {

using model::RowsPlace;
using testing::HasSubstr;

class RowsPlaceTest : public testing::Test {
 protected:
  absl::StatusOr<model::PlanResult> Plan(const model::PlanRequest& request) {
    return MakePlan(request, {}, planners_, clock_, {});
  }
  // The cost of the cheapest plan with the rows in one place, by trying all of them.
  std::optional<double> CheapestBy(model::PlanRequest request, RowsPlace place) {
    request.rows = place;
    const auto problem = Problem::Compile(request);
    EXPECT_THAT(problem, base::IsOk());
    const auto found = MakeBruteForce()->SolveStages(*problem, 0, Budget(clock_, base::SteadyTime::max(), {}));
    EXPECT_THAT(found, base::IsOk());
    return found->best ? std::optional(found->best->score.cost) : std::nullopt;
  }

  const Registry planners_ = BuiltinPlanners();
  base::FakeClock clock_;
};

// One pool and a small table, which only a server could keep before.
model::PlanRequest OnePool() {
  model::PlanRequest r;
  model::Layer table, dense;
  table.name = "emb";
  table.sparse = true;
  table.weight_bytes = 4096 * 8 * 4;
  table.profiles = {{"cpu", 0.010, 1, 0.002, 0, 1, 0.006}};
  dense.name = "fc";
  dense.weight_bytes = 1e5;
  dense.profiles = {{"cpu", 0.020, 1, 0.001, 0, 1, 0}};
  r.model.layers = {table, dense};
  r.training.profile_batch_size = 64;
  r.training.samples_per_epoch = 1e6;
  r.resources = {{"cpu", model::ResourceClass::kCpu, 0.1, 1}};
  r.server_type = "cpu";
  r.rows = RowsPlace::kAny;
  return r;
}

// The trainer spends 0.010 + 0.020 s on a batch, and 0.006 s on the work of the server.
TEST_F(RowsPlaceTest, AJobOfOnePoolWithOneUnitRuns) {
  const auto result = Plan(OnePool());
  ASSERT_THAT(result, base::IsOk());
  ASSERT_TRUE(result->plan) << result->reasons.front().message;
  EXPECT_EQ(result->plan->server_units, 0);
  EXPECT_EQ(result->plan->trainers_with_rows, 1);
  EXPECT_NEAR(result->plan->throughput, 64 / 0.036, 1e-6);
  EXPECT_NEAR(result->plan->cost_usd, 1e6 / (64 / 0.036) / 3600 * 0.1, 1e-9);
  ASSERT_TRUE(result->gap);
  EXPECT_NEAR(*result->gap, 0, 1e-9);
  const model::ExecutionPlan& plan = *result->execution_plan;
  EXPECT_EQ(plan.servers, (model::Servers{"", 1, true}));
  EXPECT_THAT(Validate(plan, 2), base::IsOk());
  EXPECT_EQ(Summary(plan, {"emb", "fc"}), "emb..fc@1xcpu + rows in 1 trainer");
  ASSERT_FALSE(result->notes.empty());
  EXPECT_THAT(result->notes.back(), HasSubstr("with servers there is no plan, because it needs 2 units of cpu"));

  model::PlanRequest before = OnePool();
  before.rows = RowsPlace::kServers;
  const auto refused = Plan(before);
  ASSERT_THAT(refused, base::IsOk());
  EXPECT_FALSE(refused->plan) << "who does not know such plans gets none";
}

// Half of a core takes twice as long for the work of a server.
TEST_F(RowsPlaceTest, TheWorkOfServersTakesTheCoresOfATrainer) {
  model::PlanRequest request = OnePool();
  request.resources[0].cores = 0.5;
  const auto result = Plan(request);
  ASSERT_THAT(result, base::IsOk());
  ASSERT_TRUE(result->plan);
  EXPECT_NEAR(result->plan->throughput, 64 / 0.042, 1e-6);
}

TEST_F(RowsPlaceTest, ServersAreBoughtWhereTheTableDoesNotFitIntoATrainer) {
  model::PlanRequest request = OnePool();
  request.resources[0].limit = 4;
  const double state = request.training.state_factor;
  const double table = request.model.layers[0].weight_bytes, dense = request.model.layers[1].weight_bytes;
  request.resources[0].memory_bytes = state * table * 0.99;
  const auto result = Plan(request);
  ASSERT_THAT(result, base::IsOk());
  ASSERT_TRUE(result->plan);
  EXPECT_GT(result->plan->server_units, 0);
  EXPECT_EQ(result->plan->trainers_with_rows, 0);
  request.resources[0].memory_bytes = state * (table + dense) * 1.01;
  const auto fits = Plan(request);
  ASSERT_THAT(fits, base::IsOk());
  EXPECT_EQ(fits->plan->server_units, 0);
  EXPECT_LT(fits->plan->cost_usd, result->plan->cost_usd);
}

TEST_F(RowsPlaceTest, AModelWithoutTablesHasNoChoice) {
  model::PlanRequest request = OnePool();
  request.model.layers[0].profiles[0].server_seconds = 0;
  request.model.layers[0].sparse = false;
  EXPECT_FALSE(ChoosesRowsPlace(request));
  const auto result = Plan(request);
  ASSERT_THAT(result, base::IsOk());
  EXPECT_EQ(result->plan->trainers_with_rows, 0);
  EXPECT_TRUE(result->notes.empty());
}

// The simulator times both kinds of plans: it sees the work of the shard in the trainer.
TEST_F(RowsPlaceTest, TheSimulatorChargesTheShardToItsTrainer) {
  model::PlanRequest request = OnePool();
  request.training.micro_batches = 1;
  request.simulate = true;
  const auto inside = Plan(request);
  ASSERT_THAT(inside, base::IsOk());
  ASSERT_TRUE(inside->simulated);
  EXPECT_NEAR(inside->simulated->throughput, 64 / 0.036, 64 / 0.036 * 0.15);
  model::PlanRequest lighter = request;
  lighter.model.layers[0].profiles[0].server_seconds = 0.0001;
  const auto light = Plan(lighter);
  ASSERT_THAT(light, base::IsOk());
  EXPECT_GT(light->simulated->throughput, inside->simulated->throughput * 1.1);
}

// The cheapest of all plans of both kinds, and a certificate without gap.
TEST_F(RowsPlaceTest, ExactCostsWhatBruteForceCostsWithBothChoices) {
  int feasible = 0, inside = 0, served = 0;
  double worst = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    model::PlanRequest request = AdversarialRequest(seed, {.most_layers = 5, .boundaries = true});
    request.rows = RowsPlace::kAny;
    request.planner.evaluator = model::EvaluatorKind::kCostModel;
    const std::optional<double> with_servers = CheapestBy(request, RowsPlace::kServers);
    const std::optional<double> in_trainers = CheapestBy(request, RowsPlace::kTrainers);
    const auto result = Plan(request);
    ASSERT_THAT(result, base::IsOk());
    ASSERT_EQ(result->plan.has_value(), with_servers.has_value() || in_trainers.has_value());
    if (!result->plan) continue;
    ++feasible;
    const double truth = std::min(with_servers.value_or(kInfinity), in_trainers.value_or(kInfinity));
    worst = std::max(worst, std::abs(result->plan->cost_usd / truth - 1));
    ASSERT_LE(worst, 1e-9);
    ASSERT_TRUE(result->lower_bound_usd);
    ASSERT_NEAR(*result->lower_bound_usd, truth, truth * 1e-9);
    inside += result->plan->trainers_with_rows > 0 ? 1 : 0;
    served += result->plan->server_units > 0 ? 1 : 0;
    ASSERT_FALSE(result->plan->trainers_with_rows > 0 && result->plan->server_units > 0);
    ASSERT_THAT(Validate(*result->execution_plan, static_cast<int>(request.model.layers.size())), base::IsOk());
  }
  std::printf("400 instances: %d feasible, %d with rows in trainers, %d with servers, largest difference %.1e\n",
              feasible, inside, served, worst);
  EXPECT_GE(feasible, 200);
  EXPECT_GE(inside, 20);
  EXPECT_GE(served, 20);
}

model::PlanResult Answer(std::optional<double> cost, std::optional<double> bound) {
  model::PlanResult result;
  if (!cost) return result;
  result.plan.emplace().cost_usd = *cost;
  result.plan->cost_per_hour = *cost;
  result.lower_bound_usd = bound;
  result.execution_plan.emplace();
  return result;
}

TEST(BetterPlaceTest, ABoundHoldsForBothPlaces) {
  const model::PlanRequest request = OnePool();
  const auto better = [&](const model::PlanResult& servers, bool servers_known, const model::PlanResult& trainers,
                          bool trainers_known) {
    return BetterPlace(request, servers, servers_known, trainers, trainers_known, RowsPlace::kTrainers);
  };
  EXPECT_EQ(better(Answer(3, 2), true, Answer(4, 1), true).lower_bound_usd, 1);
  EXPECT_EQ(better(Answer(3, 2), true, Answer(4, 1), true).plan->cost_usd, 3);
  EXPECT_EQ(better(Answer(3, 3), true, Answer({}, {}), true).lower_bound_usd, 3) << "no plan has rows in trainers";
  const auto unknown = better(Answer(3, 3), true, Answer({}, {}), false);
  EXPECT_EQ(unknown.lower_bound_usd, std::nullopt) << "a cheaper plan may have rows in trainers";
  EXPECT_FALSE(unknown.complete);
  EXPECT_EQ(unknown.execution_plan->provenance.gap, 1);
  EXPECT_EQ(better(Answer(3, {}), true, Answer(4, 1), true).lower_bound_usd, std::nullopt);
  EXPECT_EQ(better(Answer(3, 3), true, Answer(3, 3), true).notes.size(), 0U) << "servers, where both cost the same";
  EXPECT_THAT(better(Answer(3, 3), true, Answer(2, 2), true).notes.back(), HasSubstr("the best plan costs 3 USD"));
}

}  // namespace
}  // namespace medley::sched::rows_place_test
