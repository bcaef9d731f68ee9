#include "scheduler-service/graph/strategy.h"

#include <set>

#include "common/program/compile.h"
#include "scheduler-service/devices/device_simulator.h"
#include "scheduler-service/simulate/plan_simulation.h"
#include "tests/unit/scheduler-service/graph/graphs.h"
#include "tests/unit/scheduler-service/planning/judge_of.h"

namespace medley::sched {
namespace {

using base::IsOk;

model::ExecutionPlan PlanOf(const DeviceProblem& problem, const GraphStrategy& strategy) {
  const OperationGroups groups = GroupOperations(problem, static_cast<int>(strategy.actions.size()));
  auto plan = BuildGraphPlan(problem, groups, strategy);
  EXPECT_THAT(plan, IsOk());
  return plan.ok() ? *std::move(plan) : model::ExecutionPlan{};
}

// Two devices of a pool twice as fast as the two of the other.
model::PlanRequest TwoToOne() { return ClusterRequest({2, 2}, {1, 2}, 4); }

TEST(GraphStrategyTest, NamesAreThoseOfThePaper) {
  const DeviceProblem problem = ProblemOf(TwoToOne());
  EXPECT_EQ(ActionName(problem, 2), "p1-0");
  EXPECT_EQ(ActionName(problem, ActionOf(problem, Replicas::kEvenServer)), "EV-PS");
  EXPECT_EQ(ActionName(problem, ActionOf(problem, Replicas::kProportionalAllreduce)), "CP-AR");
}

TEST(GraphStrategyTest, ReplicasAreCountedByPower) {
  EXPECT_EQ(ReplicaCounts(ProblemOf(TwoToOne())), (std::vector<int>{2, 2, 1, 1}));
  EXPECT_EQ(ReplicaCounts(ProblemOf(ClusterRequest({1, 1}, {1, 1.4}))), (std::vector<int>{1, 1}));
  EXPECT_EQ(ReplicaCounts(ProblemOf(ClusterRequest({1, 1}, {1, 1}, 2, 0))), (std::vector<int>{1, 1}));
}

TEST(GraphStrategyTest, SharesFollowTheAction) {
  const DeviceProblem problem = ProblemOf(TwoToOne());
  const int even = ActionOf(problem, Replicas::kEvenAllreduce),
            power = ActionOf(problem, Replicas::kProportionalAllreduce);
  const model::ExecutionPlan plan = PlanOf(problem, {{even, power, 3, 3}});
  ASSERT_EQ(plan.placements.size(), 3u);
  EXPECT_EQ(plan.placements[0].replicas.size(), 4u);
  EXPECT_DOUBLE_EQ(plan.placements[0].replicas[0].share, 0.25);
  EXPECT_DOUBLE_EQ(plan.placements[1].replicas[0].share, 1.0 / 3);
  EXPECT_DOUBLE_EQ(plan.placements[1].replicas[2].share, 1.0 / 6);
  ASSERT_EQ(plan.placements[2].replicas.size(), 1u);
  EXPECT_EQ(plan.placements[2].replicas[0].device, "p1-1");
  EXPECT_EQ(plan.placements[2].operations, (std::vector<model::OperationRange>{{2, 4}}));
  EXPECT_EQ(plan.placements[2].sync.kind, model::SyncKind::kNone);
}

TEST(GraphStrategyTest, ServersAreSpreadByBytes) {
  const DeviceProblem problem = ProblemOf(TwoToOne());
  const model::ExecutionPlan plan = PlanOf(problem, {std::vector<int>(4, ActionOf(problem, Replicas::kEvenServer))});
  std::set<std::string> roots;
  for (const model::Placement& placement : plan.placements) {
    EXPECT_EQ(placement.sync.algorithm, model::AllreduceAlgorithm::kCentralized);
    roots.insert(placement.sync.root);
  }
  EXPECT_EQ(roots.size(), 4u);
}

TEST(GraphStrategyTest, TheServerIsBehindTheFastestLinks) {
  model::PlanRequest request = ClusterRequest({3}, {1}, 1);
  request.cluster.links.push_back({"p0-1", "*", 1e-5, 1e10});
  const DeviceProblem problem = ProblemOf(request);
  EXPECT_EQ(PlanOf(problem, {{ActionOf(problem, Replicas::kEvenServer)}}).placements[0].sync.root, "p0-1");
}

TEST(GraphStrategyTest, MachinesAddInsideFirstWhereThatIsFaster) {
  model::PlanRequest request = ClusterRequest({4}, {1}, 1, 1, 1e8);
  // A ring in this order crosses machines at every link.
  for (int d = 0; d < 4; ++d) request.cluster.devices[static_cast<size_t>(d)].machine = d % 2 == 0 ? "m0" : "m1";
  request.cluster.links = {{"*", "*", 1e-4, 1e8}, {"m0", "m0", 1e-6, 1e11}, {"m1", "m1", 1e-6, 1e11}};
  const DeviceProblem problem = ProblemOf(request);
  const model::Sync sync = PlanOf(problem, {{ActionOf(problem, Replicas::kEvenAllreduce)}}).placements[0].sync;
  ASSERT_EQ(sync.hierarchy.size(), 1u);
  EXPECT_EQ(sync.hierarchy[0].groups, (std::vector<std::vector<std::string>>{{"p0-0", "p0-2"}, {"p0-1", "p0-3"}}));
}

TEST(GraphStrategyTest, EmbeddingRowsStayOnOneDevice) {
  model::PlanRequest request = TwoToOne();
  request.model.layers[0].sparse = true;
  const DeviceProblem problem = ProblemOf(request);
  const model::ExecutionPlan plan = PlanOf(problem, {std::vector<int>(4, ActionOf(problem, Replicas::kEvenAllreduce))});
  ASSERT_EQ(plan.placements[0].operations, (std::vector<model::OperationRange>{{0, 1}}));
  EXPECT_EQ(plan.placements[0].replicas.size(), 1u);
  EXPECT_THAT(program::Compile(plan, problem.profile().model), IsOk());
}

TEST(GraphStrategyTest, EveryStrategyIsAValidPlan) {
  base::Rng rng(23);
  for (int round = 0; round < 60; ++round) {
    const DeviceProblem problem =
        RandomGraphProblem(rng, 1 + static_cast<int>(rng.Below(5)), 2 + static_cast<int>(rng.Below(20)));
    const OperationGroups groups = GroupOperations(problem, 6);
    const GraphStrategy strategy = RandomStrategy(rng, problem, groups);
    const auto plan = BuildGraphPlan(problem, groups, strategy);
    ASSERT_THAT(plan, IsOk());
    ASSERT_THAT(model::Validate(*plan, problem.layers()), IsOk());
    ASSERT_THAT(program::Compile(*plan, problem.profile().model), IsOk());
    EXPECT_EQ(plan->order.size(), strategy.order != OrderBy::kModel ? 3 * static_cast<size_t>(problem.layers()) : 0);
  }
}

// A chain has one order of passes. Its reductions must not wait for a large one whose gradients are complete last.
// Replicas of 4,000 operations on 150 devices are 1.2 million passes.
TEST(GraphStrategyTest, TooManyPassesAreNotOrdered) {
  const DeviceProblem problem = ProblemOf(ClusterRequest({150}, {1}, 4000));
  const OperationGroups groups = GroupOperations(problem, 1);
  const GraphStrategy strategy{{ActionOf(problem, Replicas::kEvenAllreduce)}, 0, OrderBy::kReady};
  EXPECT_THAT(BuildGraphPlan(problem, groups, strategy),
              base::StatusIs(absl::StatusCode::kInvalidArgument,
                             testing::HasSubstr("ordering 1200000 passes of operations: at most 1000000")));
  const Budget limits = Unlimited();
  const JudgeOf judge(problem);
  GraphTimer timer(*judge, groups, limits, 2);
  EXPECT_EQ(timer.Seconds(strategy), kForever);
  EXPECT_THAT(timer.WhyNot(strategy), testing::HasSubstr("at most 1000000 are ordered"));
}

TEST(GraphStrategyTest, RankChangesNothingInAChain) {
  model::PlanRequest request = ClusterRequest({4}, {1}, 6, 0.1, 6e6);
  request.model.layers[0].weight_bytes = 5e7;
  const DeviceProblem problem = ProblemOf(request);
  const OperationGroups groups = GroupOperations(problem, 6);
  const Budget limits = Unlimited();
  const JudgeOf judge(problem);
  GraphTimer timer(*judge, groups, limits, 10);
  GraphStrategy strategy{std::vector<int>(6, ActionOf(problem, Replicas::kEvenAllreduce)), 1};
  const double ranked = timer.Seconds(strategy);
  for (const OrderBy order : kOrders) {
    strategy.order = order;
    EXPECT_NEAR(ranked / timer.Seconds(strategy), 1, 1e-9);
  }
}

// DeviceSimulator simulates few steps of synchronous plans.
TEST(GraphStrategyTest, StepsAreSoonAlike) {
  base::Rng rng(47);
  for (int round = 0; round < 60; ++round) {
    const DeviceProblem problem =
        RandomGraphProblem(rng, 2 + static_cast<int>(rng.Below(4)), 2 + static_cast<int>(rng.Below(20)));
    const OperationGroups groups = GroupOperations(problem, 8);
    const auto plan = BuildGraphPlan(problem, groups, RandomStrategy(rng, problem, groups));
    ASSERT_THAT(plan, IsOk());
    const DeviceLinks links{problem.links(), problem.index()};
    PlanSimulationOptions options{.steps = 200, .count_memory = false};
    options.links = &links;
    const auto many = SimulatePlan(*plan, problem.profile(), options);
    ASSERT_THAT(many, IsOk());
    DeviceSimulator evaluator(problem, {});
    const auto few = evaluator.Seconds(*plan);
    ASSERT_THAT(few, IsOk());
    EXPECT_NEAR(*few / many->simulation.seconds_per_step, 1, 1e-3) << "round " << round;
  }
}

}  // namespace
}  // namespace medley::sched
