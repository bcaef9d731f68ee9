#include "reproductions/heterog/baselines.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "reproductions/heterog/hetpipe.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/registry.h"
#include "tests/unit/scheduler-service/graph/graphs.h"
#include "tests/unit/scheduler-service/pipeline/pipelines.h"

namespace medley::reproductions::heterog {
namespace {

using base::IsOk;

// For the planner with this name; `graph` is the service's.
sched::Candidate Solve(const std::string& name, const sched::DeviceProblem& problem,
                       const sched::GraphOptions& options = {.groups = 48, .calls = 400}) {
  sched::Registry planners;
  planners.Add(sched::MakeGraph(options));
  for (auto& planner : MakeBaselines(options)) planners.Add(std::move(planner));
  auto solution = planners.Find(name, sched::Supply::kDevices)->Solve(problem, 1, sched::NoLimits());
  EXPECT_THAT(solution, IsOk()) << name;
  return solution.ok() ? *std::move(solution) : sched::Candidate{};
}

TEST(BaselinesTest, AllMakeValidPlansAboveTheBound) {
  base::Rng rng(31);
  for (int round = 0; round < 4; ++round) {
    const sched::DeviceProblem problem = sched::RandomGraphProblem(rng, 3, 8);
    for (const auto& planner : MakeBaselines({.groups = 6, .calls = 150})) {
      if (planner->name() == "hetpipe") continue;
      const sched::Candidate solution = Solve(std::string(planner->name()), problem, {.groups = 6, .calls = 150});
      ASSERT_TRUE(solution.plan) << planner->name();
      EXPECT_THAT(model::Validate(*solution.plan, problem.layers()), IsOk());
      EXPECT_GE(solution.figures.seconds, solution.lower_bound * (1 - 1e-9));
      EXPECT_LE(solution.judged, 150) << planner->name();
    }
  }
}

TEST(BaselinesTest, TheSearchOfTheServiceIsNoWorse) {
  base::Rng rng(41);
  for (int round = 0; round < 3; ++round) {
    const sched::DeviceProblem problem = sched::RandomGraphProblem(rng, 4, 12);
    const double found = Solve("graph", problem).figures.seconds;
    for (const char* name : {"ev-ps", "ev-ar", "cp-ps", "cp-ar"}) {
      EXPECT_LE(found, Solve(name, problem).figures.seconds * (1 + 1e-9)) << name;
    }
  }
}

TEST(BaselinesTest, WhatFitsOnNoDeviceIsNotCopied) {
  model::PlanRequest request = sched::ClusterRequest({3}, {1}, 6, 1, 6e9);
  request.resources[0].memory_bytes = 13e9;  // the whole model with its state needs 18 GB
  EXPECT_FALSE(Solve("ev-ar", sched::ProblemOf(request)).plan);
}

// A tiny question has fewer strategies than a planner may simulate: the search ends nevertheless.
TEST(BaselinesTest, EndWhereNoneOfFewStrategiesFits) {
  model::PlanRequest request = sched::ClusterRequest({1}, {1}, 1, 1, 6e9);
  request.resources[0].memory_bytes = 1e6;
  for (const char* name : {"graph-random", "graph-mcmc", "graph-post"}) {
    EXPECT_FALSE(Solve(name, sched::ProblemOf(request)).plan) << name;
  }
}

// The largest model that is allowed, and nobody waits for its plan.
TEST(BaselinesTest, LargeQuestionsEndWhenTheyAreStopped) {
  const sched::DeviceProblem problem = sched::ProblemOf(sched::ClusterRequest({300, 200}, {1, 3}, 4096));
  std::stop_source stop;
  stop.request_stop();
  const base::SystemClock clock;
  for (const auto& planner : MakeBaselines()) {
    const auto solution = planner->Solve(problem, 1, sched::Budget(clock, base::SteadyTime::max(), stop.get_token()));
    if (planner->name() == "hetpipe") {
      EXPECT_THAT(solution,
                  base::StatusIs(absl::StatusCode::kInvalidArgument,
                                 testing::HasSubstr("planner hetpipe is for at most 64 devices and 256 cuts")));
      continue;
    }
    ASSERT_THAT(solution, IsOk()) << planner->name();
    EXPECT_FALSE(solution->plan);
    EXPECT_FALSE(solution->complete);
  }
}

// Four fast devices and two slow ones are one virtual worker of six or two of three. A slow
// stage gets a third of the layers of a fast one.
TEST(BaselinesTest, VirtualWorkersOfHetPipeAreAlike) {
  model::PlanRequest request = sched::ClusterRequest({4, 2}, {1, 3}, 14);
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  const auto found = HetPipe(sched::ProblemOf(request), sched::NoLimits());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].size(), 6u);
  ASSERT_EQ(found[1].size(), 3u);
  int layers = 0;
  for (const sched::PipelineStage& stage : found[1]) {
    ASSERT_EQ(stage.devices.size(), 2u);
    const bool slow = stage.devices[0] >= 4;
    EXPECT_EQ(stage.devices[1] >= 4, slow) << "replicas of a stage are of one pool";
    EXPECT_EQ(stage.end - stage.first, slow ? 2 : 6);
    layers += stage.end - stage.first;
  }
  EXPECT_EQ(layers, 14);
}

TEST(BaselinesTest, HetPipeEndsWithItsLimits) {
  const sched::DeviceProblem problem = sched::ProblemOf(sched::ClusterRequest({16, 16, 16, 16}, {1, 2, 3, 4}, 200));
  std::stop_source stop;
  stop.request_stop();
  const base::SystemClock clock;
  EXPECT_TRUE(HetPipe(problem, sched::Budget(clock, base::SteadyTime::max(), stop.get_token())).empty());
}

}  // namespace
}  // namespace medley::reproductions::heterog
