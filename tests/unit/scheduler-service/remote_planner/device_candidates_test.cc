// What the service makes of plans for the goal step time that another process sends: it checks and times each of them.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "common/model/convert.h"
#include "medley/planner/v1/planner.pb.h"
#include "scheduler-service/devices/plans.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/remote_planner/candidates.h"
#include "scheduler-service/remote_planner/remote_planner.h"
#include "tests/unit/scheduler-service/devices/random_cluster.h"

namespace medley::sched {
namespace {

using testing::HasSubstr;

std::string Message(const model::ExecutionPlan& plan, bool done = false) {
  planner::v1::SolveResponse response;
  model::ToProto(plan, *response.mutable_plan());
  response.set_done(done);
  return response.SerializeAsString();
}

class DeviceCandidatesTest : public testing::Test {
 protected:
  const DeviceProblem problem_ = ProblemOf(ClusterRequest({2, 1}, {1, 4}));
  const model::ExecutionPlan one_ = BuildDataParallel(problem_, {{0}, {1}, {}, {}});
  const model::ExecutionPlan two_ =
      BuildDataParallel(problem_, {{0, 1}, {0.5, 0.5}, {}, {model::AllreduceAlgorithm::kRing}});
  const Question question_{problem_};
  DeviceCandidates candidates_{question_, {}};
};

TEST_F(DeviceCandidatesTest, TheFastestIsKept) {
  EXPECT_FALSE(candidates_.Take(Message(one_)));
  EXPECT_NEAR(candidates_.seconds(), 1, 1e-6);
  EXPECT_FALSE(candidates_.Take(Message(two_)));
  EXPECT_TRUE(candidates_.Take(Message(one_, true)));
  EXPECT_EQ(*candidates_.best(), two_);
  EXPECT_LT(candidates_.seconds(), 0.6);
  EXPECT_EQ(candidates_.refused(), 0);
}

TEST_F(DeviceCandidatesTest, WhatAPlanClaimsIsNotKept) {
  model::ExecutionPlan plan = two_;
  plan.estimate.throughput = 1e9;
  plan.provenance.planner = "another";
  candidates_.Take(Message(plan));
  EXPECT_EQ(*candidates_.best(), two_);
}

TEST_F(DeviceCandidatesTest, WhatCannotBeUsedIsRefused) {
  const auto refused = [&](auto change, std::string why) {
    DeviceCandidates candidates(question_, {});
    model::ExecutionPlan plan = two_;
    change(plan);
    candidates.Take(Message(plan));
    EXPECT_EQ(candidates.refused(), 1) << why;
    EXPECT_FALSE(candidates.usable());
    EXPECT_THAT(candidates.first_refusal(), HasSubstr(why));
  };
  refused([](auto& p) { p.devices[1].id = p.placements[0].replicas[1].device = "p9-0"; },
          "is no device of the cluster");
  refused([](auto& p) { p.devices[1].pool = "p1"; }, "or another one there");
  refused([](auto& p) { p.schedule.micro_batches = 7; }, "plan.schedule: is not that of the request");
  refused([](auto& p) { p.placements[0].replicas[0].share = 0.7; }, "shares must sum to 1");
  refused([](auto& p) { p.placements[0].operations = {{0, 3}}; }, "operation");
  refused([](auto& p) { p.placements.clear(); }, "plan.placements: must not be empty");
  planner::v1::SolveResponse schedule;
  schedule.add_schedule("p0");
  candidates_.Take(schedule.SerializeAsString());
  EXPECT_THAT(candidates_.first_refusal(), HasSubstr("plan: must be set"));
  candidates_.Take("garbage");
  EXPECT_EQ(candidates_.refused(), 2);
}

TEST_F(DeviceCandidatesTest, WhatDoesNotFitIsInfeasible) {
  model::PlanRequest request = ClusterRequest({2}, {1});
  request.resources[0].memory_bytes = 1e6;
  const DeviceProblem problem = ProblemOf(request);
  const Question question(problem);
  DeviceCandidates candidates(question, {});
  candidates.Take(Message(BuildDataParallel(problem, {{0}, {1}, {}, {}})));
  EXPECT_EQ(candidates.infeasible(), 1);
  EXPECT_FALSE(candidates.usable());
}

// A process that is not running: the answer is the service's own, and says so.
TEST_F(DeviceCandidatesTest, WithoutTheProcessTheOwnPlanIsTheAnswer) {
  const Registry registry = BuiltinPlanners();
  const auto planner =
      MakeRemotePlanner({.name = "tapp", .address = "127.0.0.1:1", .planner = "tapp", .timeout_seconds = 30},
                        *registry.Find("auto", Supply::kDevices));
  ASSERT_THAT(planner, base::IsOk());
  const base::SystemClock clock;
  const auto solution = (*planner)->Solve(problem_, 1, Budget(clock, clock.Steady() + base::seconds(600), {}));
  ASSERT_THAT(solution, base::IsOk());
  ASSERT_TRUE(solution->plan);
  EXPECT_NE(solution->planner, "");
  EXPECT_THAT(solution->notes.back(), HasSubstr("the answer is the service's own"));
}

// Where there is no other plan of one's own, auto compares the families and says why.
TEST_F(DeviceCandidatesTest, AutoSaysWhatItCompared) {
  const Registry registry = BuiltinPlanners();
  const base::SystemClock clock;
  const Budget limits(clock, base::SteadyTime::max(), {});
  const auto solution = registry.Find("auto", Supply::kDevices)->Solve(problem_, 1, limits);
  ASSERT_THAT(solution, base::IsOk());
  EXPECT_THAT(solution->notes.back(),
              HasSubstr("planner auto compared hierarchy (replicas of the whole model in groups)"));
  EXPECT_THAT(solution->notes.back(), HasSubstr("exact (pipelines, of which few devices allow an exact search)"));
  EXPECT_THAT(solution->notes.back(), HasSubstr("local (pipelines, by local search with the simulator)"));
  for (const Planner* planner : registry.Of(Supply::kDevices)) {
    const auto other = planner->Solve(problem_, 1, limits);
    ASSERT_THAT(other, base::IsOk()) << planner->name();
    if (planner->name() == "hierarchy" || planner->name() == "exact" || planner->name() == "local") {
      EXPECT_LE(solution->figures.seconds, other->figures.seconds * (1 + 1e-9)) << planner->name();
    }
  }
}

}  // namespace
}  // namespace medley::sched
