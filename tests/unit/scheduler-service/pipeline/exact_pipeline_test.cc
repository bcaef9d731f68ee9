#include "scheduler-service/pipeline/exact_pipeline.h"

#include <functional>

#include "scheduler-service/pipeline/baselines.h"
#include "scheduler-service/pipeline/closed_form.h"
#include "tests/unit/scheduler-service/pipeline/pipelines.h"

namespace medley::sched {
namespace {

using base::IsOk;
using base::StatusIs;

// All pipelines of the problem: every division of layers, every assignment of disjoint sets of devices.
double BruteForce(const StepTimeProblem& problem) {
  double best = kForever;
  std::vector<PipelineStage> stages;
  const unsigned all = (1U << problem.devices()) - 1;
  const std::function<void(int, unsigned)> extend = [&](int first, unsigned used) {
    if (first == problem.layers()) {
      best = std::min(best, SecondsOfPipeline(problem, stages).step);
      return;
    }
    for (int end = first + 1; end <= problem.layers(); ++end) {
      if (end < problem.layers() && !std::ranges::count(problem.cuts(), end)) continue;
      const unsigned rest = all & ~used;
      for (unsigned set = rest; set > 0; set = (set - 1) & rest) {
        PipelineStage stage{first, end, {}};
        for (int d = 0; d < problem.devices(); ++d) {
          if ((set >> d & 1) != 0) stage.devices.push_back(d);
        }
        stages.push_back(stage);
        extend(end, used | set);
        stages.pop_back();
      }
    }
  };
  extend(0, 0);
  return best;
}

TEST(ExactPipelineTest, AgainstBruteForce) {
  base::Rng rng(51);
  for (int round = 0; round < 160; ++round) {
    const StepTimeProblem problem =
        RandomPipelineProblem(rng, 1 + static_cast<int>(rng.Below(4)), 1 + static_cast<int>(rng.Below(5)));
    const auto exact = FindExactPipeline(problem, NoLimits());
    ASSERT_THAT(exact, IsOk());
    const double best = BruteForce(problem);
    EXPECT_LE(exact->seconds, best * (1 + kExactGap)) << "round " << round;
    EXPECT_GE(exact->seconds, best * (1 - 1e-9)) << "round " << round;
    EXPECT_LE(exact->lower_bound, best * (1 + 1e-9)) << "round " << round;
    EXPECT_GE(exact->lower_bound, exact->seconds * (1 - 2 * kExactGap)) << "round " << round;
    EXPECT_NEAR(SecondsOfPipeline(problem, exact->stages).step, exact->seconds, 1e-12);
    ExpectLegal(problem, exact->stages);
  }
}

TEST(ExactPipelineTest, DevicesThatAreAlikeAreInterchangeable) {
  model::PlanRequest request = ClusterRequest({3, 2}, {1, 3}, 8);
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  const StepTimeProblem problem = ProblemOf(request);
  const auto exact = FindExactPipeline(problem, NoLimits());
  ASSERT_THAT(exact, IsOk());
  base::Rng rng(52);
  for (int draw = 0; draw < 2000; ++draw) {
    EXPECT_LE(exact->lower_bound, SecondsOfPipeline(problem, RandomPipeline(problem, rng)).step * (1 + 1e-9));
  }
}

TEST(ExactPipelineTest, RefusesManyDevices) {
  const StepTimeProblem problem = ProblemOf(ClusterRequest({9}, {1}));
  EXPECT_THAT(FindExactPipeline(problem, NoLimits()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the exact search is for at most 8 devices, the cluster has 9: use planner local"));
}

TEST(ExactPipelineTest, ManyLayersAreJoined) {
  model::PlanRequest request = ClusterRequest({2}, {1}, 200);
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  const StepTimeProblem problem = ProblemOf(request);
  const auto exact = FindExactPipeline(problem, NoLimits());
  ASSERT_THAT(exact, IsOk());
  EXPECT_EQ(exact->pieces_joined, 200 - kMostExactPieces);
  EXPECT_NEAR(exact->seconds, 0.5, 0.02);
}

TEST(ExactPipelineTest, WithoutTimeTheBoundHoldsStill) {
  base::Rng rng(53);
  const StepTimeProblem problem = RandomPipelineProblem(rng, 6, 12);
  std::stop_source stop;
  stop.request_stop();
  const base::SystemClock clock;
  const Budget limits(clock, base::SteadyTime::max(), stop.get_token());
  const auto exact = FindExactPipeline(problem, limits);
  ASSERT_THAT(exact, IsOk());
  EXPECT_LE(exact->lower_bound, FindExactPipeline(problem, NoLimits())->seconds * (1 + 1e-9));
}

}  // namespace
}  // namespace medley::sched
