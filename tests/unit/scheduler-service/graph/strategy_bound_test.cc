#include "scheduler-service/graph/strategy_bound.h"

#include "scheduler-service/devices/device_simulator.h"
#include "tests/unit/scheduler-service/graph/graphs.h"

namespace medley::sched {
namespace {

// Unlike devices, some of which share machines, with one to four micro-batches.
DeviceProblem RandomProblem(base::Rng& rng) {
  const int devices = 2 + static_cast<int>(rng.Below(4));
  model::PlanRequest request = RandomGraphProblem(rng, devices, 3 + static_cast<int>(rng.Below(6))).request();
  if (rng.Below(3) == 0) request.training.micro_batches = 4;
  if (rng.Below(3) == 0) {
    for (model::Device& device : request.cluster.devices) device.machine = "m" + std::to_string(rng.Below(2));
  }
  if (rng.Below(3) == 0) {
    for (model::Layer& layer : request.model.layers) {
      for (model::LayerProfile& times : layer.profiles) times.update_part = 0.2;
    }
  }
  if (rng.Below(2) == 0) {
    for (model::Layer& layer : request.model.layers) {
      for (model::LayerProfile& times : layer.profiles) times.forward_part = rng.Uniform(0.01, 0.6);
    }
  }
  if (rng.Below(2) == 0) {
    for (model::Layer& layer : request.model.layers) {
      for (model::LayerProfile& times : layer.profiles) {
        times.undivided_seconds = rng.Uniform(0.5, 1.2) * times.compute_seconds;
        times.undivided_parallel = rng.Below(2) == 0 ? 0 : rng.Uniform(0.3, 1);
      }
    }
  }
  return ProblemOf(std::move(request));
}

TEST(StrategyBoundTest, NoStrategyIsFaster) {
  constexpr int kProblems = 150, kStrategies = 12;
  int close = 0;  // with a bound of at least half of its seconds
  for (uint64_t seed = 1; seed <= kProblems; ++seed) {
    base::Rng rng(seed);
    const DeviceProblem problem = RandomProblem(rng);
    const OperationGroups groups = GroupOperations(problem, 2 + static_cast<int>(rng.Below(5)));
    const StrategyBound bound(problem, groups);
    DeviceSimulator evaluator(problem, std::stop_token());
    for (int s = 0; s < kStrategies; ++s) {
      const GraphStrategy strategy = RandomStrategy(rng, problem, groups);
      const auto plan = BuildGraphPlan(problem, groups, strategy);
      ASSERT_THAT(plan, base::IsOk());
      const auto seconds = evaluator.Seconds(*plan);
      if (absl::IsResourceExhausted(seconds.status())) continue;
      ASSERT_THAT(seconds, base::IsOk()) << "seed " << seed;
      for (size_t decided = 0; decided <= strategy.actions.size(); ++decided) {
        ASSERT_FALSE(bound.Reaches(strategy.actions, decided, *seconds * (1 + 1e-9)))
            << "seed " << seed << ", strategy " << s << ", " << decided << " groups decided";
      }
      close += bound.Reaches(strategy.actions, strategy.actions.size(), *seconds / 2) ? 1 : 0;
    }
  }
  EXPECT_GT(close, kProblems * kStrategies / 2) << "a bound of nothing excludes nothing";
}

TEST(StrategyBoundTest, SaysNothingOfEmbeddingRows) {
  base::Rng rng(1);
  model::PlanRequest request = RandomGraphProblem(rng, 2, 4).request();
  request.model.layers[0].sparse = true;
  const DeviceProblem problem = ProblemOf(std::move(request));
  const OperationGroups groups = GroupOperations(problem, 4);
  EXPECT_FALSE(StrategyBound(problem, groups).Reaches({0, 0, 0, 0}, 4, 0));
}

TEST(CanonicalTest, StandsForStrategiesWithTheSamePlan) {
  const DeviceProblem alike = ProblemOf(ClusterRequest({2}, {1}));
  const OperationGroups groups = GroupOperations(alike, 4);
  const int server = ActionOf(alike, Replicas::kProportionalServer), even = ActionOf(alike, Replicas::kEvenServer);
  EXPECT_EQ(Canonical(alike, groups, {{server, 0, even, 1}}).actions, (std::vector<int>{even, 0, even, 1}));
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    base::Rng rng(seed);
    const DeviceProblem problem = RandomGraphProblem(rng, 3, 6);
    const OperationGroups own = GroupOperations(problem, 6);
    const GraphStrategy strategy = RandomStrategy(rng, problem, own), canonical = Canonical(problem, own, strategy);
    EXPECT_EQ(Canonical(problem, own, canonical), canonical) << "seed " << seed;
    const auto one = BuildGraphPlan(problem, own, strategy), other = BuildGraphPlan(problem, own, canonical);
    ASSERT_THAT(one, base::IsOk());
    ASSERT_THAT(other, base::IsOk());
    EXPECT_EQ(*one, *other) << "seed " << seed;
  }
}

}  // namespace
}  // namespace medley::sched
