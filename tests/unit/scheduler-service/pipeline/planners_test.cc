// The planners of pipelines.
#include "scheduler-service/pipeline/pipeline_planners.h"

#include "common/model/execution_plan.h"
#include "scheduler-service/pipeline/baselines.h"
#include "scheduler-service/pipeline/closed_form.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/registry.h"
#include "tests/unit/scheduler-service/pipeline/pipelines.h"

namespace medley::sched {
namespace {

using base::IsOk;

class PipelinePlannersTest : public testing::Test {
 protected:
  PipelinePlannersTest() {
    for (auto& planner : MakePipelinePlanners()) planners_.Add(std::move(planner));
  }
  Candidate Solve(const std::string& name, const DeviceProblem& problem) {
    auto solution = planners_.Find(name, Supply::kDevices)->Solve(problem, 1, NoLimits());
    EXPECT_THAT(solution, IsOk()) << name;
    return solution.ok() ? *std::move(solution) : Candidate{};
  }
  Registry planners_;
};

TEST_F(PipelinePlannersTest, AllMakePlansAndExactIsAmongTheBest) {
  base::Rng rng(61);
  double above = 0;
  for (int round = 0; round < 12; ++round) {
    const DeviceProblem problem = RandomPipelineProblem(rng, 2 + static_cast<int>(rng.Below(4)),
                                                        2 + static_cast<int>(rng.Below(6)), round % 3 > 0);
    const double exact = Solve("exact", problem).figures.seconds;
    for (const auto& planner : planners_.planners()) {
      const Candidate solution = Solve(std::string(planner->name()), problem);
      ASSERT_TRUE(solution.plan) << planner->name();
      EXPECT_THAT(model::Validate(*solution.plan, problem.layers()), IsOk());
      EXPECT_GT(solution.figures.seconds, 0);
      EXPECT_GT(solution.model_seconds, 0);
      above = std::max(above, exact / solution.figures.seconds - 1);
    }
  }
  EXPECT_LT(above, 0.2);  // by the simulator another plan may be a little better than the best of the closed form
}

TEST_F(PipelinePlannersTest, ADeviceAloneComputesItsBatchInOnePiece) {
  const double divided = Solve("one-device", ProblemOf(TwoFarDevices(1))).figures.seconds;
  const DeviceProblem problem = ProblemOf(TwoFarDevices(0.7));
  const double alone = Solve("one-device", problem).figures.seconds;
  EXPECT_NEAR(alone, 0.7 * divided, 1e-6);
  EXPECT_NEAR(problem.WorkOf(0, problem.layers(), 0).At(1), alone, 1e-6);
  EXPECT_GT(problem.WorkOf(0, 3, 0).At(1) + problem.WorkOf(3, problem.layers(), 0).At(1), 1.4 * alone);
  EXPECT_LE(problem.LeastWorkOf(0, 3, 0).At(1) + problem.LeastWorkOf(3, problem.layers(), 0).At(1), alone + 1e-6);
  for (const char* planner : {"exact", "local"}) EXPECT_EQ(Solve(planner, problem).figures.seconds, alone) << planner;
}

// Pipe-torch gives every device a stage of equal work, however slow it is.
TEST_F(PipelinePlannersTest, PipeTorchDoesNotSeeThatDevicesDiffer) {
  model::PlanRequest request = ClusterRequest({2, 1}, {1, 10}, 12);
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  const DeviceProblem problem = ProblemOf(request);
  const double exact = Solve("exact", problem).figures.seconds;
  EXPECT_GT(Solve("pipe-torch", problem).figures.seconds, 1.5 * exact);
  EXPECT_GE(Solve("pipedream", problem).figures.seconds, 0.999 * exact);
  EXPECT_LT(Solve("local", problem).figures.seconds, 1.05 * exact);
}

TEST_F(PipelinePlannersTest, PipeTorchPutsFastLinksTogether) {
  model::PlanRequest request = ClusterRequest({4}, {1}, 8);
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  request.cluster.links.push_back({"p0-1", "p0-3", 1e-5, 1e11});
  const DeviceProblem problem = ProblemOf(request);
  const auto stages = PipeTorch(problem);
  ASSERT_EQ(stages.size(), 4u);
  EXPECT_EQ(stages[0].devices, std::vector<int>{1});
  EXPECT_EQ(stages[1].devices, std::vector<int>{3});
}

TEST_F(PipelinePlannersTest, AModelOfOneLayerIsOneStage) {
  model::PlanRequest request = ClusterRequest({3}, {1}, 1);
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  const DeviceProblem problem = ProblemOf(request);
  for (const auto& planner : planners_.planners()) {
    const Candidate solution = Solve(std::string(planner->name()), problem);
    ASSERT_TRUE(solution.plan) << planner->name();
    EXPECT_EQ(solution.plan->placements.size(), 1u);
  }
}

// The largest question that is allowed: every planner ends soon after its limits, or says that it is too large.
TEST_F(PipelinePlannersTest, LargeQuestionsAreBounded) {
  model::PlanRequest request = ClusterRequest({300, 200}, {1, 3}, 1000);
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  const DeviceProblem problem = ProblemOf(request);
  std::stop_source stop;
  stop.request_stop();
  const base::SystemClock clock;
  for (const auto& planner : planners_.planners()) {
    const auto solution = planner->Solve(problem, 1, Budget(clock, base::SteadyTime::max(), stop.get_token()));
    if (solution.ok()) continue;
    EXPECT_THAT(solution.status(), base::StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("at most")))
        << planner->name();
  }
}

TEST_F(PipelinePlannersTest, WithoutMemoryTheReasonIsSaid) {
  model::PlanRequest request = ClusterRequest({2}, {1}, 4, 1, 4e9);
  request.resources[0].memory_bytes = 1e6;
  const Candidate solution = Solve("exact", ProblemOf(request));
  EXPECT_FALSE(solution.plan);
  ASSERT_FALSE(solution.notes.empty());
  EXPECT_THAT(solution.notes.back(), testing::HasSubstr("no pipeline fits on these devices"));
}

}  // namespace
}  // namespace medley::sched
