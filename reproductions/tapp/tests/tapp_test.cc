// The features, the networks and the planner of tapp.
#include <gmock/gmock.h>

#include <map>
#include <string>

#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "reproductions/tapp/baselines.h"
#include "reproductions/tapp/tapp_planner.h"
#include "scheduler-service/pipeline/pipeline_planners.h"
#include "scheduler-service/pipeline/repair.h"
#include "scheduler-service/planning/candidate.h"
#include "tests/unit/scheduler-service/pipeline/pipelines.h"

namespace medley::reproductions::tapp {
namespace {

using base::IsOk;
using testing::ElementsAre;

sched::DeviceProblem ThreeLayers(int devices) {
  model::PlanRequest request = sched::ClusterRequest({devices}, {1}, 3);
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  request.model.layers[0].kind = "CONVOLUTION";
  request.model.layers[1].kind = "RELU";
  request.model.layers[2].inputs = {0, 1};
  return sched::ProblemOf(std::move(request));
}

TEST(TappFeaturesTest, ThirtyTwoNumbersOfALayer) {
  const auto features = FeaturesOf(ThreeLayers(2));
  ASSERT_EQ(features.size(), 3u);
  EXPECT_EQ(kLayerWidth, 32);
  EXPECT_EQ(features[0].kind, 0);
  EXPECT_EQ(features[1].kind, 1);
  EXPECT_EQ(features[2].kind, kLayerKinds - 1);  // Unknown
  EXPECT_THAT(features[0].consumers, ElementsAre(1, 2));
  EXPECT_FLOAT_EQ(features[0].next[0], 2.0F / 3);  // layers count from 1
  EXPECT_FLOAT_EQ(features[0].next[2], 1);
  EXPECT_THAT(features[2].next, ElementsAre(-0.1F, -0.1F, -0.1F, -0.1F));  // section 4.1: what is absent
  EXPECT_FLOAT_EQ(features[1].metrics[2], 1.0F / 3);                       // of equal layers each has a third
  EXPECT_FLOAT_EQ(features[1].metrics[3], 2.0F / 3);
}

TEST(TappFeaturesTest, KindsOfExportedModels) {
  EXPECT_EQ(KindIndex("CONV2D"), KindIndex("CONVOLUTION"));
  EXPECT_EQ(KindIndex("LINEAR"), KindIndex("FULLY_CONNECTED"));
  EXPECT_EQ(KindIndex("MAXPOOL2D"), KindIndex("POOLING"));
  EXPECT_EQ(KindIndex("ZEROPAD2D"), KindIndex("PADDING"));
  EXPECT_EQ(KindIndex("LSTM"), kLayerKinds - 1);
}

// With a reward for one choice, the policy learns it.
TEST(TappPolicyTest, LearnsWhatIsRewarded) {
  for (const auto partition : {TappSettings::Partition::kCuts, TappSettings::Partition::kGroups}) {
    TappSettings settings;
    settings.partition = partition;
    settings.groups = 3;
    settings.units = 32;
    settings.learning_rate = 0.02;
    settings.entropy = 0.02;
    TappPolicy policy(FeaturesOf(ThreeLayers(2)), 2, settings, 7);
    const auto reward = [](const TappDraw& draw) {
      const bool one_group =
          draw.group_of_layer[0] == draw.group_of_layer[1] && draw.group_of_layer[1] == draw.group_of_layer[2];
      const auto& devices = draw.devices_of_group[static_cast<size_t>(draw.group_of_layer[0])];
      return (one_group ? 1.0 : 0.0) + (devices == std::vector<int>{1} ? 1.0 : 0.0);
    };
    for (int round = 0; round < 120; ++round) {
      std::vector<double> rewards;
      double mean = 0;
      for (const TappDraw& draw : policy.Draw(8)) mean += rewards.emplace_back(reward(draw)) / 8;
      for (double& one : rewards) one -= mean;
      policy.Learn(rewards);
    }
    EXPECT_DOUBLE_EQ(reward(policy.MostLikely()), 2) << static_cast<int>(partition);
  }
}

TEST(TappPolicyTest, EqualSeedsGiveEqualDraws) {
  TappPolicy a(FeaturesOf(ThreeLayers(4)), 4, {}, 3), b(FeaturesOf(ThreeLayers(4)), 4, {}, 3);
  for (int i = 0; i < 5; ++i) {
    const TappDraw one = a.Draw(2)[1], other = b.Draw(2)[1];
    EXPECT_EQ(one.group_of_layer, other.group_of_layer);
    EXPECT_EQ(one.devices_of_group, other.devices_of_group);
    a.Learn({1, i == 2 ? 1.0 : -1.0});
    b.Learn({1, i == 2 ? 1.0 : -1.0});
  }
}

TEST(TappPolicyTest, ADeviceIsGivenOnceAndEveryGroupGetsOne) {
  base::Rng rng(4);
  for (int round = 0; round < 30; ++round) {
    const sched::DeviceProblem problem = sched::RandomPipelineProblem(rng, 1 + static_cast<int>(rng.Below(6)), 6);
    TappPolicy policy(FeaturesOf(problem), problem.devices(), {}, rng.Next());
    const TappDraw draw = policy.Draw(3)[2];
    std::set<int> used;
    for (const auto& group : draw.devices_of_group) {
      for (const int d : group) EXPECT_TRUE(used.insert(d).second);
    }
    const int groups = draw.group_of_layer.back() + 1;
    if (groups > problem.devices()) continue;
    for (int g = 0; g < groups; ++g) EXPECT_FALSE(draw.devices_of_group[static_cast<size_t>(g)].empty());
    sched::ExpectLegal(problem, sched::RepairPipeline(problem, draw.group_of_layer, draw.devices_of_group).stages);
  }
}

TappOptions Quick() {
  TappOptions options;
  options.settings.units = 32;
  options.calls = 300;
  options.rounds = 60;
  return options;
}

TEST(TappBaselinesTest, MakePlansAndTheBestSubsetIsNoWorseThanAllDevices) {
  base::Rng rng(61);
  for (int round = 0; round < 6; ++round) {
    const sched::DeviceProblem problem =
        sched::RandomPipelineProblem(rng, 2 + static_cast<int>(rng.Below(4)), 2 + static_cast<int>(rng.Below(6)), true);
    std::map<std::string, double> seconds;
    for (const auto& planner : MakeBaselines()) {
      const auto solution = planner->Solve(problem, 1, sched::NoLimits());
      ASSERT_THAT(solution, IsOk()) << planner->name();
      ASSERT_TRUE(solution->plan) << planner->name();
      EXPECT_THAT(model::Validate(*solution->plan, problem.layers()), IsOk());
      seconds[std::string(planner->name())] = solution->figures.seconds;
    }
    EXPECT_LE(seconds.at("bsp-subset"), seconds.at("bsp"));
  }
}

TEST(TappPlannerTest, IsNearTheExactPipeline) {
  base::Rng rng(71);
  const auto exact = [](const sched::DeviceProblem& problem) {
    for (auto& planner : sched::MakePipelinePlanners()) {
      if (planner->name() == "exact") {
        return planner->Solve(problem, 1, sched::NoLimits())->figures.seconds;
      }
    }
    return 0.0;
  };
  for (int round = 0; round < 4; ++round) {
    const sched::DeviceProblem problem = sched::RandomPipelineProblem(rng, 3, 6);
    const auto solution = MakeTapp(Quick())->Solve(problem, 1, sched::NoLimits());
    ASSERT_THAT(solution, IsOk());
    ASSERT_TRUE(solution->plan);
    EXPECT_LE(solution->figures.seconds, 1.1 * exact(problem)) << "round " << round;
    EXPECT_LE(solution->judged, 300 + 20);
  }
}

// Its draws are timed as what they would run: one stage on one device computes a batch in one piece.
TEST(TappPlannerTest, ChoosesADeviceAloneThatComputesItsBatchInOnePiece) {
  const sched::DeviceProblem problem = sched::ProblemOf(sched::TwoFarDevices(0.7));
  const auto solution = MakeTapp(Quick())->Solve(problem, 1, sched::NoLimits());
  ASSERT_THAT(solution, IsOk());
  ASSERT_TRUE(solution->plan);
  EXPECT_EQ(solution->plan->devices.size(), 1u);
  EXPECT_NEAR(solution->figures.seconds, problem.WorkOf(0, problem.layers(), 0).At(1), 1e-6);
  EXPECT_LT(1.4 * solution->figures.seconds,
            problem.WorkOf(0, 3, 0).At(1) + problem.WorkOf(3, problem.layers(), 0).At(1));
}

// Rewards may come from real processes: what they say counts, also against the simulator.
TEST(TappPlannerTest, RewardsMayBeMeasured) {
  base::Rng rng(74);
  const sched::DeviceProblem problem = sched::RandomPipelineProblem(rng, 3, 6);
  static const base::SystemClock clock;
  int64_t measured = 0;
  const auto measure = [&](const model::ExecutionPlan& plan) -> absl::StatusOr<double> {
    ++measured;
    if (plan.devices.size() == 3) return base::Unavailable("a process has ended");
    return plan.devices.size() == 2 ? 0.5 : 1;
  };
  TappOptions options = Quick();
  options.calls = 60;
  const sched::Question question(problem);
  const auto judge = sched::MakeMeasurement(question, measure, {});
  const auto solution = MakeTapp(options)->Solve(question, *judge, 1, {clock, base::SteadyTime::max(), {}});
  ASSERT_THAT(solution, IsOk());
  ASSERT_TRUE(solution->plan);
  EXPECT_EQ(solution->plan->devices.size(), 2u);
  EXPECT_DOUBLE_EQ(solution->figures.seconds, 0.5);
  EXPECT_GT(measured, 0);
  EXPECT_LE(measured, solution->judged);
}

TEST(TappPlannerTest, EqualSeedsGiveEqualPlans) {
  base::Rng rng(72);
  const sched::DeviceProblem problem = sched::RandomPipelineProblem(rng, 4, 6);
  const auto solve = [&] { return MakeTapp(Quick())->Solve(problem, 5, sched::NoLimits())->plan; };
  EXPECT_EQ(*solve(), *solve());
}

TEST(TappPlannerTest, ThePapersSettingsNeedRepair) {
  base::Rng rng(73);
  const sched::DeviceProblem problem = sched::RandomPipelineProblem(rng, 3, 6);
  TappOptions options = Quick();
  options.paper = true;
  options.rounds = 3;
  options.polish = 0;
  const auto solution = MakeTapp(options)->Solve(problem, 1, sched::NoLimits());
  ASSERT_THAT(solution, IsOk());
  EXPECT_TRUE(solution->plan);
  EXPECT_GT(solution->repaired, 0);  // of 256 groups, most have one layer and no device
}

}  // namespace
}  // namespace medley::reproductions::tapp
