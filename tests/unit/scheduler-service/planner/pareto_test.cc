// Compares the Pareto front with all schedules with all numbers of units.
#include "scheduler-service/planner/pareto.h"

#include <gtest/gtest.h>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/planner/pareto_proto.h"
#include "tests/unit/scheduler-service/planner/adversarial_request.h"
#include "tests/unit/scheduler-service/planner/all_plans.h"
#include "tests/unit/scheduler-service/planner/scale_request.h"

namespace medley::sched {
namespace {

bool NoWorse(const Score& a, const Score& b) {
  return a.cost <= b.cost * (1 + 1e-9) && a.throughput >= b.throughput * (1 - 1e-9);
}

class ParetoTest : public testing::Test {
 protected:
  base::FakeClock clock_;
  const Budget unlimited_{clock_, base::SteadyTime::max(), {}};
};

TEST_F(ParetoTest, IsTheFrontOfAllFeasiblePlans) {
  size_t points = 0, most = 0, feasible = 0;
  for (uint64_t seed = 1; seed <= 250; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    model::PlanRequest request = AdversarialRequest(
        seed, {.most_layers = 4, .most_types = 3, .most_limit = 7, .boundaries = true, .links = seed % 2 == 0});
    for (model::Resource& r : request.resources) r.limit = std::min(r.limit, 7);
    const auto problem = Problem::Compile(request);
    ASSERT_THAT(problem, base::IsOk());
    const std::vector<Provisioned> all = AllPlans(*problem);
    const Front front = ExactFront(*problem, unlimited_);
    ASSERT_TRUE(front.complete);
    ASSERT_EQ(front.plans.empty(), all.empty());
    for (const Provisioned& plan : all) {
      ASSERT_TRUE(std::any_of(front.plans.begin(), front.plans.end(),
                              [&](const Provisioned& p) { return NoWorse(p.score, plan.score); }))
          << plan.score.cost << " USD at " << plan.score.throughput;
    }
    for (size_t i = 0; i < front.plans.size(); ++i) {
      ASSERT_TRUE(Evaluate(*problem, front.plans[i].stages).violations.empty());
      if (i == 0) continue;
      ASSERT_GT(front.plans[i].score.throughput, front.plans[i - 1].score.throughput);
      ASSERT_GT(front.plans[i].score.cost, front.plans[i - 1].score.cost);
    }
    feasible += all.empty() ? 0 : 1;
    points += front.plans.size();
    most = std::max(most, front.plans.size());
  }
  std::printf("%zu feasible, %zu points, the longest front has %zu\n", feasible, points, most);
  EXPECT_GE(feasible, 120U);
  EXPECT_GE(points, 400U);
}

// Plans with servers and plans with rows in the trainers, of which each dominates some of the other.
TEST_F(ParetoTest, IsTheFrontOfBothPlacesOfRows) {
  int inside = 0, served = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    model::PlanRequest request = AdversarialRequest(seed, {.most_layers = 3, .most_types = 2, .boundaries = true});
    for (model::Resource& r : request.resources) r.limit = std::min(r.limit, 5);
    request.rows = model::RowsPlace::kAny;
    double weights = 0;
    for (const model::Layer& layer : request.model.layers) weights += layer.weight_bytes;
    // In half of the requests few trainers have room for tables beside their layers.
    for (model::Resource& r : request.resources) {
      if (seed % 2 == 0)
        r.memory_bytes = request.training.state_factor * weights * (0.3 + 0.05 * static_cast<double>(seed % 12));
    }
    std::vector<Score> all;
    for (const model::RowsPlace place : {model::RowsPlace::kServers, model::RowsPlace::kTrainers}) {
      model::PlanRequest one = request;
      one.rows = place;
      const auto problem = Problem::Compile(one);
      ASSERT_THAT(problem, base::IsOk());
      for (const Provisioned& plan : AllPlans(*problem)) all.push_back(plan.score);
    }
    const auto front = MakePareto(request, {}, 10'000, clock_, {});
    ASSERT_THAT(front, base::IsOk());
    ASSERT_EQ(front->plans.empty(), all.empty());
    const auto no_worse = [](const model::ProvisionedPlan& a, double cost, double throughput) {
      return a.cost_usd <= cost * (1 + 1e-9) && a.throughput >= throughput * (1 - 1e-9);
    };
    for (const Score& plan : all) {
      ASSERT_TRUE(std::ranges::any_of(
          front->plans, [&](const model::ProvisionedPlan& p) { return no_worse(p, plan.cost, plan.throughput); }))
          << plan.cost << " USD at " << plan.throughput;
    }
    for (size_t i = 0; i < front->plans.size(); ++i) {
      inside += front->plans[i].trainers_with_rows > 0 ? 1 : 0;
      served += front->plans[i].server_units > 0 ? 1 : 0;
      if (i == 0) continue;
      ASSERT_GT(front->plans[i].throughput, front->plans[i - 1].throughput);
      ASSERT_GT(front->plans[i].cost_usd, front->plans[i - 1].cost_usd);
    }
  }
  std::printf("%d plans with rows in trainers, %d with servers\n", inside, served);
  EXPECT_GE(inside, 20);
  EXPECT_GE(served, 20);
}

TEST_F(ParetoTest, BeginsWithThePlanOfExact) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const auto problem = Problem::Compile(ScaleRequest(seed, {.layers = 12, .types = 4}));
    ASSERT_THAT(problem, base::IsOk());
    const Front front = ExactFront(*problem, unlimited_);
    const auto exact = MakeExact()->SolveStages(*problem, 0, unlimited_);
    ASSERT_GE(front.plans.size(), 2U);
    EXPECT_NEAR(front.plans.front().score.cost, exact->best->score.cost, 1e-9 * exact->best->score.cost);
  }
}

TEST_F(ParetoTest, ThinningKeepsBothEndsAndSpreads) {
  std::vector<double> throughputs;
  for (int i = 0; i < 1000; ++i) throughputs.push_back(100 + i);
  const std::vector<size_t> eleven = Thinned(throughputs, 11);
  ASSERT_EQ(eleven.size(), 11U);
  EXPECT_EQ(eleven.front(), 0U);
  EXPECT_EQ(eleven.back(), 999U);
  for (size_t i = 1; i < eleven.size(); ++i) EXPECT_NEAR(static_cast<double>(eleven[i] - eleven[i - 1]), 100, 1);
  EXPECT_EQ(Thinned(throughputs, 0).size(), 64U);
  EXPECT_EQ(Thinned(throughputs, 1), std::vector<size_t>{0});
  EXPECT_EQ(Thinned(throughputs, 2), (std::vector<size_t>{0, 999}));
  EXPECT_EQ(Thinned({1, 2, 3}, 3), (std::vector<size_t>{0, 1, 2}));
  EXPECT_TRUE(Thinned({}, 5).empty());
  // Clustered throughputs: the result is still distinct and ascending, with both ends.
  EXPECT_EQ(Thinned({1, 1.1, 1.2, 1.3, 100}, 4).size(), 4U);
  EXPECT_EQ(Thinned({1, 1.1, 1.2, 1.3, 100}, 4).back(), 4U);
}

TEST_F(ParetoTest, AnswersWithReasonsResourcesAndRevision) {
  model::PlanRequest request = ScaleRequest(1, {.layers = 6, .types = 2, .min_throughput = 1e9});
  auto result = MakePareto(request, {7, "2026-01-02T03:04:05Z"}, 8, clock_, {});
  ASSERT_THAT(result, base::IsOk());
  EXPECT_TRUE(result->plans.empty());
  EXPECT_FALSE(result->reasons.empty());
  request.constraints.min_throughput = 50'000;
  result = MakePareto(request, {7, "2026-01-02T03:04:05Z"}, 8, clock_, {});
  ASSERT_THAT(result, base::IsOk());
  EXPECT_EQ(result->plans.size(), 8U);
  scheduler::v1::ParetoResponse message;
  ToProto(*result, message);
  EXPECT_EQ(message.plans_size(), 8);
  EXPECT_TRUE(message.complete());
  EXPECT_EQ(message.catalog_revision(), 7);
  EXPECT_EQ(message.price_time().seconds(), 1767323045);
  EXPECT_EQ(message.resources_size(), 2);
  EXPECT_EQ(MakePareto(request, {}, -1, clock_, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ParetoTest, KeepsValidPlansWhenTimeIsUp) {
  const model::PlanRequest request = ScaleRequest(3, {.layers = 12, .types = 4});
  std::stop_source stopped;
  stopped.request_stop();
  const auto result = MakePareto(request, {}, 0, clock_, stopped.get_token());
  ASSERT_THAT(result, base::IsOk());
  EXPECT_FALSE(result->complete);
  EXPECT_FALSE(result->plans.empty());
}

}  // namespace
}  // namespace medley::sched
