#include "scheduler-service/graph/bound.h"

#include "tests/unit/scheduler-service/graph/graphs.h"
#include "tests/unit/scheduler-service/planning/judge_of.h"

namespace medley::sched {
namespace {

TEST(GraphBoundTest, WorkIsSpreadOverDevices) {
  // 1 s on each of two devices, 2 s on each of two others: 1 / (1 + 1 + 1/2 + 1/2).
  const GraphBound bound = BoundOfGraph(ProblemOf(ClusterRequest({2, 2}, {1, 2}, 4)));
  EXPECT_NEAR(bound.work, 1.0 / 3, 1e-3);
  EXPECT_LE(bound.work, 1.0 / 3 + 1e-12);
  EXPECT_NEAR(bound.path, 1.0 / 3, 1e-9);  // a chain divides as well
}

TEST(GraphBoundTest, DevicesTakeWhatTheyAreGoodAt) {
  model::PlanRequest request = ClusterRequest({1, 1}, {1, 1}, 2);
  request.model.layers[0].profiles[1].compute_seconds = 50;
  request.model.layers[1].profiles[0].compute_seconds = 50;
  const GraphBound bound = BoundOfGraph(ProblemOf(request));
  EXPECT_NEAR(bound.work, 0.5, 0.01);  // each device takes one of them
  EXPECT_GT(bound.path, 0.9);          // but one after the other
}

TEST(GraphBoundTest, WhatCannotBeDividedIsInThePath) {
  model::PlanRequest request = ClusterRequest({4}, {1}, 2);
  for (model::Layer& layer : request.model.layers) layer.profiles[0].compute_parallel = 0;
  EXPECT_NEAR(BoundOfGraph(ProblemOf(request)).path, 1, 1e-9);
}

TEST(GraphBoundTest, NothingThatIsSimulatedFallsBelow) {
  base::Rng rng(29);
  double tightest = 0;
  for (int round = 0; round < 40; ++round) {
    const DeviceProblem problem =
        RandomGraphProblem(rng, 1 + static_cast<int>(rng.Below(5)), 2 + static_cast<int>(rng.Below(12)));
    const OperationGroups groups = GroupOperations(problem, 8);
    const Budget limits = Unlimited();
    const JudgeOf judge(problem);
    GraphTimer timer(*judge, groups, limits, 60);
    const double bound = BoundOfGraph(problem).seconds();
    EXPECT_GT(bound, 0);
    for (int draw = 0; draw < 60; ++draw) {
      const double seconds = timer.Seconds(RandomStrategy(rng, problem, groups));
      ASSERT_GE(seconds, bound * (1 - 1e-9)) << "round " << round;
    }
    tightest = std::max(tightest, bound / timer.best_seconds());
  }
  EXPECT_GT(tightest, 0.5);  // not a bound of nothing
}

}  // namespace
}  // namespace medley::sched
