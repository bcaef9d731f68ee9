#include "scheduler-service/pipeline/exact_pipeline.h"

#include <cstdio>
#include <ctime>
#include <functional>

#include "scheduler-service/pipeline/baselines.h"
#include "scheduler-service/pipeline/closed_form.h"
#include "scheduler-service/pipeline/step_bound.h"
#include "tests/unit/scheduler-service/pipeline/pipelines.h"

namespace medley::sched {
namespace {

using base::IsOk;
using base::StatusIs;

// All pipelines of the problem: every division of layers, every assignment of disjoint sets of devices.
double BruteForce(const DeviceProblem& problem) {
  double best = kForever;
  std::vector<PipelineStage> stages;
  const unsigned all = (1U << problem.devices()) - 1;
  const std::function<void(int, unsigned)> extend = [&](int first, unsigned used) {
    if (first == problem.layers()) {
      best = std::min(best, SecondsOfPipeline(problem, stages));
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
    const DeviceProblem problem =
        RandomPipelineProblem(rng, 1 + static_cast<int>(rng.Below(4)), 1 + static_cast<int>(rng.Below(5)));
    const auto exact = FindExactPipeline(problem, NoLimits());
    ASSERT_THAT(exact, IsOk());
    const double best = BruteForce(problem);
    EXPECT_LE(exact->seconds, best * (1 + kExactGap)) << "round " << round;
    EXPECT_GE(exact->seconds, best * (1 - 1e-9)) << "round " << round;
    EXPECT_LE(exact->lower_bound, best * (1 + 1e-9)) << "round " << round;
    EXPECT_GE(exact->lower_bound, exact->seconds * (1 - 2 * kExactGap)) << "round " << round;
    EXPECT_NEAR(SecondsOfPipeline(problem, exact->stages), exact->seconds, 1e-12);
    ExpectLegal(problem, exact->stages);
  }
}

TEST(ExactPipelineTest, TheBoundOfSynchronousPipelinesHoldsAndIsNearThem) {
  base::Rng rng(54);
  int near = 0, proven = 0;
  constexpr int kRounds = 160;
  for (int round = 0; round < kRounds; ++round) {
    const DeviceProblem problem =
        RandomPipelineProblem(rng, 1 + static_cast<int>(rng.Below(4)), 1 + static_cast<int>(rng.Below(5)), false);
    const auto exact = FindExactPipeline(problem, NoLimits());
    ASSERT_THAT(exact, IsOk());
    const double best = BruteForce(problem);
    EXPECT_GE(exact->seconds, best * (1 - 1e-9)) << "round " << round;
    ASSERT_LE(exact->lower_bound, best * (1 + 1e-9)) << "round " << round;
    EXPECT_GT(exact->lower_bound, best / 2) << "round " << round;
    near += exact->lower_bound >= 0.9 * best ? 1 : 0;
    proven += exact->lower_bound >= exact->seconds * (1 - 2 * kStepGap) ? 1 : 0;
  }
  std::printf("%d synchronous questions: the bound of %d is within 10 %% of the best, of %d it is the best\n", kRounds,
              near, proven);
  EXPECT_GE(near, kRounds * 3 / 4);
  EXPECT_GE(proven, kRounds / 4);
}

// Calls `visit` with every pipeline, or with a random part of them.
void ForEachPipeline(const DeviceProblem& problem, const std::function<void(const std::vector<PipelineStage>&)>& visit,
                     base::Rng& rng, double part) {
  std::vector<PipelineStage> stages;
  const unsigned all = (1U << problem.devices()) - 1;
  const std::function<void(int, unsigned)> extend = [&](int first, unsigned used) {
    if (first == problem.layers()) {
      if (rng.Uniform() < part) visit(stages);
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
}

// What a plan takes by the simulator is never below the bound that its answer tells. The bound of the closed form is
// above it in some of these questions.
TEST(ExactPipelineTest, NoSimulatedPipelineIsFasterThanTheBound) {
  base::Rng rng(55);
  int exceeded = 0;
  double worst = 0, sum = 0;
  constexpr int kRounds = 120;
  for (int round = 0; round < kRounds; ++round) {
    const bool asynchronous = round % 2 == 0;
    const DeviceProblem problem = RandomPipelineProblem(rng, 2 + static_cast<int>(rng.Below(2)),
                                                        2 + static_cast<int>(rng.Below(3)), asynchronous);
    const auto exact = FindExactPipeline(problem, NoLimits());
    ASSERT_THAT(exact, IsOk());
    double best = kForever;
    ForEachPipeline(
        problem, [&](const auto& stages) { best = std::min(best, SimulatedSeconds(problem, stages)); }, rng, 1);
    ASSERT_LE(exact->simulated_bound, best) << "round " << round;
    EXPECT_GT(exact->simulated_bound, best / 3) << "round " << round;
    exceeded += exact->lower_bound > best * (1 + 1e-6) ? 1 : 0;
    worst = std::max(worst, exact->lower_bound / best);
    sum += exact->simulated_bound / best;
  }
  std::printf(
      "%d questions: the closed form's bound exceeds the best simulated pipeline in %d, by %.1f %% at most; the "
      "simulator's is %.3f of it in the mean\n",
      kRounds, exceeded, (worst - 1) * 100, sum / kRounds);
  EXPECT_GT(exceeded, 0) << "the closed form would do";
  EXPECT_GT(sum / kRounds, 0.8);
}

TEST(ExactPipelineTest, DevicesThatAreAlikeAreInterchangeable) {
  model::PlanRequest request = ClusterRequest({3, 2}, {1, 3}, 8);
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  const DeviceProblem problem = ProblemOf(request);
  const auto exact = FindExactPipeline(problem, NoLimits());
  ASSERT_THAT(exact, IsOk());
  base::Rng rng(52);
  for (int draw = 0; draw < 2000; ++draw) {
    EXPECT_LE(exact->lower_bound, SecondsOfPipeline(problem, RandomPipeline(problem, rng)) * (1 + 1e-9));
  }
}

TEST(ExactPipelineTest, RefusesManyDevices) {
  const DeviceProblem problem = ProblemOf(ClusterRequest({9}, {1}));
  EXPECT_THAT(FindExactPipeline(problem, NoLimits()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the exact search is for at most 8 devices, the cluster has 9: use planner local"));
}

TEST(ExactPipelineTest, ManyLayersAreJoined) {
  model::PlanRequest request = ClusterRequest({2}, {1}, 200);
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  const DeviceProblem problem = ProblemOf(request);
  const auto exact = FindExactPipeline(problem, NoLimits());
  ASSERT_THAT(exact, IsOk());
  EXPECT_EQ(exact->pieces_joined, 200 - kMostExactPieces);
  EXPECT_NEAR(exact->seconds, 0.5, 0.02);
}

// Counts only this thread's processor time.
class ProcessorClock final : public base::Clock {
 public:
  base::WallTime Now() const override { return {}; }
  base::SteadyTime Steady() const override {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return base::SteadyTime(base::seconds(now.tv_sec) + base::nanoseconds(now.tv_nsec));
  }
  bool SleepUntil(base::SteadyTime, std::stop_token) override { return true; }
};

// Eight devices that all differ, and as many pieces as are searched.
TEST(ExactPipelineTest, EndsSoonAfterItsTimeOnTheLargestQuestions) {
  base::Rng rng(56);
  model::PlanRequest request = RandomClusterRequest(rng, 8, 64);
  for (size_t d = 0; d < request.cluster.devices.size(); ++d) {
    request.cluster.links.push_back({request.cluster.devices[d].id, "*", 1e-4 * static_cast<double>(d + 1), 1e8});
  }
  for (const bool asynchronous : {true, false}) {
    if (asynchronous) request.planner.schedule = model::ScheduleKind::kAsync1F1B;
    if (!asynchronous) {
      request.planner.schedule = model::ScheduleKind::kSync1F1B;
      request.training.micro_batches = 4;
    }
    const DeviceProblem problem = ProblemOf(request);
    for (const double seconds : {0.0, 0.02, 0.2}) {
      const ProcessorClock clock;
      const base::SteadyTime begin = clock.Steady();
      const auto exact = FindExactPipeline(problem, Budget(clock, begin + base::FromSeconds(seconds), {}));
      ASSERT_THAT(exact, IsOk());
      const double took = base::ToSeconds(clock.Steady() - begin);  // of the processor
      EXPECT_LT(took, seconds + 0.1);
      EXPECT_LE(exact->lower_bound, exact->stages.empty() ? kForever : exact->seconds);
    }
  }
}

TEST(ExactPipelineTest, WithoutTimeTheBoundHoldsStill) {
  base::Rng rng(53);
  const DeviceProblem problem = RandomPipelineProblem(rng, 6, 12);
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
