#include "scheduler-service/hierarchy/hierarchy_planner.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "scheduler-service/devices/device_simulator.h"
#include "scheduler-service/planning/candidate.h"
#include "tests/unit/scheduler-service/devices/random_cluster.h"

namespace medley::sched {
namespace {

using base::IsOk;
using testing::HasSubstr;

Candidate Solve(const DeviceProblem& problem, uint64_t seed = 1) {
  static const base::SystemClock clock;
  auto solution = MakeHierarchyPlanner()->Solve(problem, seed, Budget(clock, base::SteadyTime::max(), {}));
  EXPECT_THAT(solution, IsOk());
  return *std::move(solution);
}

// Table 4.1 with links as slow as its text says: the two slow groups are left out, and it is said why.
TEST(HierarchyPlannerTest, SlowGroupsBehindSlowLinksAreLeftOut) {
  model::PlanRequest request = ClusterRequest({4, 4, 3, 3}, {1, 1.2, 12, 15}, 4, 10, 1e8);
  request.cluster.links = {
      {"*", "*", 1e-3, 1.25e6}, {"p0", "p0", 1e-4, 1.25e8}, {"p0", "p1", 1e-4, 1.25e8}, {"p1", "p1", 1e-4, 1.25e8}};
  const DeviceProblem problem = ProblemOf(request);
  const Candidate solution = Solve(problem);
  ASSERT_TRUE(solution.plan);
  EXPECT_EQ(solution.plan->devices.size(), 8u);
  EXPECT_THAT(solution.explanation, HasSubstr("left out, because a step with them takes longer"));
  // With fast links everywhere they are worth having.
  request.cluster.links = {{"*", "*", 1e-4, 1.25e9}};
  EXPECT_EQ(Solve(ProblemOf(request)).plan->devices.size(), 14u);
}

// The bound never exceeds the simulated seconds, whatever the arrangement, the shares and the buckets.
TEST(HierarchyPlannerTest, TheBoundIsProven) {
  base::Rng rng(31);
  for (int round = 0; round < 150; ++round) {
    const DeviceProblem problem =
        ProblemOf(WithSlowLinks(rng, RandomClusterRequest(rng, 1 + static_cast<int>(rng.Below(12))), 0.5));
    const double bytes = problem.WeightBytes(0, problem.layers());
    std::vector<int> devices;
    for (int d = 0; d < problem.devices(); ++d) {
      if (rng.Below(3) > 0) devices.push_back(d);
    }
    if (devices.empty()) continue;
    const auto formation = static_cast<Formation>(rng.Below(6));
    DataParallel how = WithShares(problem, Arrange(problem, devices, bytes, formation, rng));
    if (rng.Below(2) == 0) how.shares.assign(how.shares.size(), 1.0 / static_cast<double>(how.shares.size()));
    model::ExecutionPlan plan = BuildDataParallel(problem, how);
    plan.schedule.bucket_bytes = rng.Below(2) == 0 ? 0 : static_cast<int64_t>(bytes / 3);
    DeviceSimulator evaluator(problem, {});
    const auto seconds = evaluator.Seconds(plan);
    ASSERT_THAT(seconds, IsOk());
    EXPECT_LE(LeastStepSeconds(problem, how.devices, bytes), *seconds * (1 + 1e-9)) << "round " << round;
  }
}

// The closed form is the simulated time of a plan without buckets.
TEST(HierarchyPlannerTest, TheClosedFormIsTheSimulatedTime) {
  base::Rng rng(32);
  for (int round = 0; round < 60; ++round) {
    const DeviceProblem problem = ProblemOf(RandomClusterRequest(rng, 1 + static_cast<int>(rng.Below(10))));
    const double bytes = problem.WeightBytes(0, problem.layers());
    const Participation chosen = ChooseGroups(problem, bytes, Formation::kBest, rng);
    DeviceSimulator evaluator(problem, {});
    const auto seconds = evaluator.Seconds(BuildDataParallel(problem, WithShares(problem, chosen.arrangement)));
    ASSERT_THAT(seconds, IsOk());
    EXPECT_NEAR(*seconds, chosen.seconds, 0.02 * chosen.seconds) << "round " << round;
  }
}

TEST(HierarchyPlannerTest, OneDeviceIsAPlan) {
  const Candidate solution = Solve(ProblemOf(ClusterRequest({1}, {1})));
  ASSERT_TRUE(solution.plan);
  EXPECT_EQ(solution.plan->devices.size(), 1u);
  EXPECT_NEAR(solution.figures.seconds, 1, 1e-6);
}

TEST(HierarchyPlannerTest, EqualSeedsGiveEqualPlans) {
  base::Rng rng(33);
  model::PlanRequest request = RandomClusterRequest(rng, 30);
  const DeviceProblem problem = ProblemOf(request);
  EXPECT_EQ(*Solve(problem, 4).plan, *Solve(problem, 4).plan);
}

}  // namespace
}  // namespace medley::sched
