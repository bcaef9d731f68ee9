// Compares Newton and the static ratios with exact provisioning, on random schedules and with numbers computed by hand.
#include "reproductions/heterps/provision_methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "common/base/testing/status_matchers.h"
#include "reproductions/heterps/newton.h"
#include "reproductions/heterps/static_ratio.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/provision/exact.h"
#include "tests/unit/scheduler-service/planner/random_request.h"

namespace medley::reproductions::heterps {
namespace {

using sched::KeepsConstraints;
using sched::Problem;
using sched::ProvisionExact;
using sched::RandomRequest;
using sched::Score;
using sched::ScoreOf;
using sched::StageChoice;
using sched::StagesOf;

// A random schedule, with types on which the layers have profiles.
std::vector<StageChoice> RandomStages(const Problem& problem, base::Rng& rng) {
  std::vector<int> schedule;
  for (int layer = 0; layer < problem.layers(); ++layer) {
    std::vector<int> types;
    for (int t = 0; t < problem.types(); ++t) {
      if (problem.Profiled(layer, t)) types.push_back(t);
    }
    const bool stay = !schedule.empty() && rng.Below(2) == 0 && problem.Profiled(layer, schedule.back());
    schedule.push_back(stay ? schedule.back() : types[rng.Below(types.size())]);
  }
  return StagesOf(schedule);
}

TEST(ProvisionMethodsTest, NoneIsCheaperThanExactAndAllMeetTheConstraints) {
  int feasible = 0, newton_found = 0;
  std::vector<double> over;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const auto problem = Problem::Compile(RandomRequest(seed, {.most_limit = 200}));
    ASSERT_THAT(problem, base::IsOk());
    base::Rng rng(seed);
    const std::vector<StageChoice> stages = RandomStages(*problem, rng);
    const auto exact = ProvisionExact(*problem, stages);
    for (const ProvisionMethod& method : ProvisionMethods()) {
      const auto found = method.provision(*problem, stages);
      if (!found) continue;
      ASSERT_TRUE(exact.has_value()) << "seed " << seed << " " << method.name;
      EXPECT_GE(found->score.cost, exact->score.cost * (1 - 1e-9)) << "seed " << seed << " " << method.name;
      EXPECT_TRUE(KeepsConstraints(*problem, found->stages, found->score)) << "seed " << seed << " " << method.name;
      const Score needed = ScoreOf(*problem, found->stages);  // ratios buy more servers than are needed
      EXPECT_GE(found->score.server_units, needed.server_units);
      EXPECT_GE(found->score.cost, needed.cost * (1 - 1e-9));
    }
    if (!exact) continue;
    ++feasible;
    if (const auto newton = ProvisionNewton(*problem, stages)) {
      ++newton_found;
      over.push_back(newton->score.cost / exact->score.cost - 1);
    }
  }
  std::sort(over.begin(), over.end());
  std::printf("2000 seeds: %d feasible; newton found %d, over exact: median %.4f %%, p95 %.2f %%\n", feasible,
              newton_found, over[over.size() / 2] * 100, over[over.size() * 95 / 100] * 100);
  EXPECT_GT(feasible, 300);
  EXPECT_GT(newton_found, feasible * 9 / 10);
  EXPECT_LT(over[over.size() / 2], 0.02);
}

// Two layers, B = 60: emb on cpu c = 0.06 (all of it divides), fc on gpu c = 0.006 + 0.006 / k; no communication.
model::PlanRequest HandMade() {
  model::PlanRequest r;
  r.model.layers.resize(2);
  r.model.layers[0].name = "emb";
  r.model.layers[0].weight_bytes = 100;
  r.model.layers[0].profiles = {{"cpu", 0.06, 1, 0, 0, 0, 0.03}};
  r.model.layers[1].name = "fc";
  r.model.layers[1].profiles = {{"gpu", 0.012, 0.5, 0, 0, 0, 0}};
  r.training.profile_batch_size = 60;
  r.training.samples_per_epoch = 3.6e6;
  r.resources = {{"cpu", model::ResourceClass::kCpu, 0.1, 100}, {"gpu", model::ResourceClass::kGpu, 2, 10}};
  r.server_type = "cpu";
  r.constraints.min_throughput = 6000;  // an iteration of 0.01 s: 6 cpu, and 0.012 * 0.5 / (0.01 - 0.006) = 1.5 gpu
  return r;
}

TEST(NewtonTest, ByHand) {
  const auto problem = Problem::Compile(HandMade());
  ASSERT_THAT(problem, base::IsOk());
  const auto found = ProvisionNewton(*problem, StagesOf({0, 1}));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->stages, (std::vector<StageChoice>{{0, 0, 0, 6}, {1, 1, 1, 2}}));
  // servers: 6000 * 0.03 / 60 = 3; (6 + 3) * 0.1 + 2 * 2 = 4.9 USD/h for 600 s.
  EXPECT_EQ(found->score.server_units, 3);
  EXPECT_NEAR(found->score.hourly, 4.9, 1e-12);
  EXPECT_NEAR(found->score.cost, 4.9 / 6, 1e-12);
}

TEST(NewtonTest, FindsTheInnerMinimum) {
  // Without a floor, and with at least 4 units of each type. Neither the fastest pipeline nor the slowest is the
  // cheapest: a slower pipeline would pay for 4 GPUs that it does not need.
  model::PlanRequest request = HandMade();
  request.constraints = {};
  request.constraints.min_units = 4;
  const auto problem = Problem::Compile(request);
  const auto newton = ProvisionNewton(*problem, StagesOf({0, 1}));
  const auto exact = ProvisionExact(*problem, StagesOf({0, 1}));
  ASSERT_TRUE(newton.has_value());
  EXPECT_LE(newton->score.cost, exact->score.cost * 1.02);
  EXPECT_GT(newton->stages[0].units, 4);
}

TEST(NewtonTest, FindsNoUnitsWhenTheSerialPartIsTooSlow) {
  model::PlanRequest request = HandMade();
  request.constraints.min_throughput = 10001;  // fc never takes less than 0.006 s
  const auto problem = Problem::Compile(request);
  EXPECT_FALSE(ProvisionNewton(*problem, StagesOf({0, 1})).has_value());
}

TEST(StaticRatioTest, ByHand) {
  const auto problem = Problem::Compile(HandMade());
  // 2 cards: 12 cores. sta-ps-ratio: 12 train, 12 serve. The gpu allows 60 / 0.009 = 6667 samples/s.
  const auto ps = ProvisionStatic(*problem, StagesOf({0, 1}), kStaPsRatio);
  ASSERT_TRUE(ps.has_value());
  EXPECT_EQ(ps->stages, (std::vector<StageChoice>{{0, 0, 0, 12}, {1, 1, 1, 2}}));
  EXPECT_EQ(ps->score.server_units, 12);
  EXPECT_NEAR(ps->score.hourly, 2 * 2 + 24 * 0.1, 1e-12);
  // sta-ratio: the same 12 cores do both; servers need X * 0.0005, 4 at 6667, so 8 train.
  const auto plain = ProvisionStatic(*problem, StagesOf({0, 1}), kStaRatio);
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->stages[1].units, 2);
  EXPECT_EQ(plain->stages[0].units + plain->score.server_units, 12);
  EXPECT_NEAR(plain->score.hourly, 2 * 2 + 12 * 0.1, 1e-12);
}

TEST(StaticRatioTest, NeedsAGpuStage) {
  model::PlanRequest request = HandMade();
  request.model.layers[1].profiles.push_back({"cpu", 0.012, 0.5, 0, 0, 0, 0});
  const auto problem = Problem::Compile(request);
  EXPECT_FALSE(ProvisionStatic(*problem, StagesOf({0, 0}), kStaRatio).has_value());
}

}  // namespace
}  // namespace medley::reproductions::heterps
