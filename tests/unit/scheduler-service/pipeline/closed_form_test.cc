#include "scheduler-service/pipeline/closed_form.h"

#include "scheduler-service/pipeline/baselines.h"
#include "tests/unit/scheduler-service/pipeline/pipelines.h"

namespace medley::sched {
namespace {

// Two stages of 0.5 s each; a value of 512 x 1 MB over 1 GB/s takes 0.512 s each way.
TEST(PipelineSecondsTest, ByHand) {
  model::PlanRequest request = ClusterRequest({2}, {1}, 2, 1, 4e6, 1e6);
  request.cluster.links = {{"*", "*", 0, 1e9}};
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  const std::vector<PipelineStage> stages = {{0, 1, {0}}, {1, 2, {1}}};
  EXPECT_NEAR(SecondsOfPipeline(ProblemOf(request), stages), (1 + 2 * 0.512) / 2,
              1e-9);  // a step comes back in two rounds
  request.planner.schedule = model::ScheduleKind::kSync1F1B;
  request.training.micro_batches = 4;
  const double cycle = (1 + 2 * 0.512) / 2;
  EXPECT_NEAR(SecondsOfPipeline(ProblemOf(request), stages), (1 + 2 * 0.512 + 3 * cycle) / 4, 1e-9);
}

// An update waits for the reduction, which nothing hides: the round is computation and reduction.
TEST(PipelineSecondsTest, ReductionsOfReplicas) {
  model::PlanRequest request = ClusterRequest({3}, {1}, 2, 1, 4e8, 1);
  request.cluster.links = {{"*", "*", 0, 1e9}};
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  const DeviceProblem problem = ProblemOf(request);
  const std::vector<PipelineStage> stages = {{0, 1, {0, 1}}, {1, 2, {2}}};
  EXPECT_NEAR(SecondsOfPipeline(problem, stages), 0.5, 1e-6);  // 0.25 s, and 0.2 s of reduction, hidden by stage 2
  EXPECT_NEAR(SimulatedSeconds(problem, stages), 0.5, 0.01);
  const std::vector<PipelineStage> other = {{0, 1, {2}}, {1, 2, {0, 1}}};
  EXPECT_NEAR(SecondsOfPipeline(problem, other), 0.5, 1e-6);
}

// The closed form against the simulator, on random pipelines: near in most cases, and rarely far.
TEST(PipelineSecondsTest, AgainstTheSimulator) {
  base::Rng rng(41);
  for (const bool asynchronous : {true, false}) {
    int near = 0;
    const int rounds = 200;
    double worst = 1;
    for (int round = 0; round < rounds; ++round) {
      const DeviceProblem problem = RandomPipelineProblem(rng, 2 + static_cast<int>(rng.Below(5)),
                                                          3 + static_cast<int>(rng.Below(8)), asynchronous);
      const auto stages = RandomPipeline(problem, rng);
      ExpectLegal(problem, stages);
      const double ratio = SimulatedSeconds(problem, stages) / SecondsOfPipeline(problem, stages);
      near += std::abs(ratio - 1) < 0.1 ? 1 : 0;
      worst = std::max({worst, ratio, 1 / ratio});
    }
    EXPECT_GE(near, asynchronous ? 170 : 120) << "of " << rounds;
    EXPECT_LT(worst, 2) << (asynchronous ? "asynchronous" : "synchronous");
  }
}

}  // namespace
}  // namespace medley::sched
