#include "scheduler-service/graph/balance.h"

#include <numeric>

#include "tests/unit/scheduler-service/graph/graphs.h"

namespace medley::sched {
namespace {

// Seconds of the device that computes longest, with these parts of the batch.
double Longest(const DeviceProblem& problem, const OperationGroups& groups, const std::vector<int>& actions,
               const std::vector<int>& counts) {
  const double all = std::accumulate(counts.begin(), counts.end(), 0);
  double longest = 0;
  for (int d = 0; d < problem.devices(); ++d) {
    double own = 0;
    for (int i = 0; i < problem.layers(); ++i) {
      const int action = actions[static_cast<size_t>(groups.group_of[static_cast<size_t>(i)])];
      if (action == d) own += problem.WorkOf(i, i + 1, d).At(1);
      if (IsReplicated(problem, action)) own += problem.WorkOf(i, i + 1, d).At(counts[static_cast<size_t>(d)] / all);
    }
    longest = std::max(longest, own);
  }
  return longest;
}

TEST(BalanceTest, NoOtherSharesMakeTheLongestShorter) {
  base::Rng rng(51);
  int balanced = 0;
  for (int round = 0; round < 40; ++round) {
    const DeviceProblem problem = RandomGraphProblem(rng, 3, 3 + static_cast<int>(rng.Below(5)));
    const OperationGroups groups = GroupOperations(problem, 4);
    const std::vector<int> actions = RandomStrategy(rng, problem, groups).actions;
    const std::vector<int> counts = BalancedCounts(problem, groups, actions);
    const int samples = problem.samples() / problem.micro_batches();
    if (counts.empty()) {
      EXPECT_TRUE(samples < 3 || std::ranges::none_of(actions, [&](int a) { return IsReplicated(problem, a); }));
      continue;
    }
    ++balanced;
    ASSERT_EQ(std::accumulate(counts.begin(), counts.end(), 0), samples);
    EXPECT_GE(std::ranges::min(counts), 1);
    double least = kForever;
    for (int a = 1; a <= samples - 2; ++a) {
      for (int b = 1; a + b <= samples - 1; ++b) {
        least = std::min(least, Longest(problem, groups, actions, {a, b, samples - a - b}));
      }
    }
    EXPECT_NEAR(Longest(problem, groups, actions, counts), least, 1e-9 * least) << round;
  }
  EXPECT_GT(balanced, 20);
}

TEST(BalanceTest, ADeviceWithOperationsOfItsOwnGetsFewerSamples) {
  const DeviceProblem problem = ProblemOf(ClusterRequest({3}, {1}, 4));
  const OperationGroups groups = GroupOperations(problem, 4);
  const int replicas = ActionOf(problem, Replicas::kEvenAllreduce);
  const std::vector<int> even = BalancedCounts(problem, groups, {replicas, replicas, replicas, replicas});
  ASSERT_EQ(even.size(), 3u);
  EXPECT_LE(std::ranges::max(even) - std::ranges::min(even), 1);
  const std::vector<int> counts = BalancedCounts(problem, groups, {replicas, replicas, replicas, 1});
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_LT(counts[1], counts[0]);
  EXPECT_LE(std::abs(counts[2] - counts[0]), 1);
}

TEST(BalanceTest, NothingToShare) {
  const DeviceProblem problem = ProblemOf(ClusterRequest({3}, {1}, 2));
  const OperationGroups groups = GroupOperations(problem, 2);
  EXPECT_TRUE(BalancedCounts(problem, groups, {0, 1}).empty());
  model::PlanRequest request = ClusterRequest({3}, {1}, 2);
  request.training.profile_batch_size = 2;
  const DeviceProblem few = ProblemOf(request);
  const int replicas = ActionOf(few, Replicas::kEvenAllreduce);
  EXPECT_TRUE(BalancedCounts(few, GroupOperations(few, 2), {replicas, replicas}).empty()) << "2 samples, 3 devices";
}

TEST(BalanceTest, SharesWithoutCountsAreThoseOfWholeReplicas) {
  const DeviceProblem problem = ProblemOf(ClusterRequest({2}, {1}, 2));
  const OperationGroups groups = GroupOperations(problem, 2);
  const int power = ActionOf(problem, Replicas::kProportionalAllreduce);
  const GraphStrategy alike{{power, power}, 0, OrderBy::kRank, {7, 7}};
  EXPECT_EQ(Canonical(problem, groups, alike).actions.front(), ActionOf(problem, Replicas::kEvenAllreduce));
  EXPECT_TRUE(Canonical(problem, groups, alike).counts.empty());
  const GraphStrategy unlike{{power, power}, 0, OrderBy::kModel, {7, 1}};
  const auto plan = BuildGraphPlan(problem, groups, unlike);
  ASSERT_THAT(plan, base::IsOk());
  EXPECT_DOUBLE_EQ(plan->placements[0].replicas[0].share, 7.0 / 8);
}

}  // namespace
}  // namespace medley::sched
