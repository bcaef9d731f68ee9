// The planner of operation-level plans.
#include "scheduler-service/graph/graph_planners.h"

#include <cmath>
#include <cstdio>

#include "scheduler-service/graph/balance.h"
#include "scheduler-service/planning/candidate.h"
#include "tests/unit/scheduler-service/graph/graphs.h"
#include "tests/unit/scheduler-service/planning/judge_of.h"

namespace medley::sched {
namespace {

using base::IsOk;

class GraphPlannersTest : public testing::Test {
 protected:
  static Candidate Solve(const DeviceProblem& problem, const GraphOptions& options = {.groups = 48, .calls = 400}) {
    auto solution = MakeGraph(options)->Solve(problem, 1, Unlimited());
    EXPECT_THAT(solution, IsOk());
    return solution.ok() ? *std::move(solution) : Candidate{};
  }
};

TEST_F(GraphPlannersTest, PlansAreValidAndAboveTheBound) {
  base::Rng rng(31);
  for (int round = 0; round < 4; ++round) {
    const DeviceProblem problem = RandomGraphProblem(rng, 3, 8);
    const Candidate solution = Solve(problem, {.groups = 6, .calls = 150});
    ASSERT_TRUE(solution.plan);
    EXPECT_THAT(model::Validate(*solution.plan, problem.layers()), IsOk());
    EXPECT_GE(solution.figures.seconds, solution.lower_bound * (1 - 1e-9));
    EXPECT_LE(solution.judged, 150 + kMostBalanceSimulations + kMostOverlapSimulations);
  }
}

// (M + 4)^groups strategies, with each size of buckets and both orders.
TEST_F(GraphPlannersTest, SmallInstancesAgainstBruteForce) {
  base::Rng rng(37);
  constexpr int kInstances = 20, kGroups = 3;
  std::vector<double> gaps;
  int overlapped = 0, balanced = 0;
  for (int instance = 0; instance < kInstances; ++instance) {
    const DeviceProblem problem = RandomGraphProblem(rng, 2, 3 + static_cast<int>(rng.Below(5)));
    const OperationGroups groups = GroupOperations(problem, kGroups);
    const Budget limits = Unlimited();
    const JudgeOf judge(problem);
    GraphTimer timer(*judge, groups, limits, 1'000'000);
    const int actions = ActionCount(problem);
    for (int code = 0; code < actions * actions * actions; ++code) {
      for (const int64_t bytes : BucketSizes(problem)) {
        for (const OrderBy order : kOrders) {
          timer.Seconds({{code % actions, code / actions % actions, code / actions / actions}, bytes, order});
        }
      }
    }
    const Candidate solution = Solve(problem, {.groups = kGroups, .calls = 600});
    double seconds = solution.figures.seconds;  // of the best plan of the paper's decisions
    const auto without = [&](std::string_view label) {
      const auto found = std::ranges::find_if(solution.alternatives,
                                              [&](const auto& alternative) { return alternative.label == label; });
      if (found == solution.alternatives.end()) return false;
      seconds = found->seconds;
      return true;
    };
    if (solution.plan->schedule.overlap_next_step) {
      ASSERT_TRUE(without("the best plan that ends its reductions before the next step"));
      EXPECT_LE(solution.figures.seconds, seconds * kWorthOverlap);
      ++overlapped;
    }
    balanced += without("the best plan with whole replicas") ? 1 : 0;
    const auto bound = DeviceSimulator(problem, std::stop_token()).Bound(*solution.plan);
    ASSERT_THAT(bound, base::IsOk());
    EXPECT_LE(bound->seconds(), solution.figures.seconds * (1 + 1e-9));
    gaps.push_back(seconds / timer.best_seconds() - 1);
  }
  EXPECT_GT(overlapped, 0);
  EXPECT_GT(balanced, 0);
  EXPECT_GE(std::ranges::count_if(gaps, [](double gap) { return gap < 1e-6; }), kInstances * 8 / 10);
  EXPECT_LT(std::ranges::max(gaps), 0.05);
  EXPECT_GT(std::ranges::min(gaps), -1e-9);
}

// A layer with most of the parameters is best on one device, and one with most of the work on all of them.
TEST_F(GraphPlannersTest, UnlikeOperationsGetUnlikeReplicas) {
  model::PlanRequest request = ClusterRequest({4}, {1}, 2, 1, 0);
  request.model.layers[0].profiles[0].compute_seconds = 4;
  request.model.layers[0].weight_bytes = 1e4;
  request.model.layers[0].output_bytes = 100;
  request.model.layers[1].profiles[0].compute_seconds = 0.01;
  request.model.layers[1].weight_bytes = 4e9;
  const Candidate solution = Solve(ProblemOf(request));
  ASSERT_EQ(solution.plan->placements.size(), 2u);
  EXPECT_EQ(solution.plan->placements[0].replicas.size(), 4u);
  EXPECT_EQ(solution.plan->placements[1].replicas.size(), 1u);
  EXPECT_THAT(solution.explanation, testing::HasSubstr("50.0 % of the operations"));
  EXPECT_THAT(solution.explanation, testing::ContainsRegex("longest path takes 1.* s, the busiest device .p0-0. 1"));
  // The four baselines with both orders, and the plan without one kind of its decisions.
  EXPECT_GE(solution.alternatives.size(), 9u);
  for (const Candidate::Alternative& other : solution.alternatives) {
    EXPECT_TRUE(!other.failure.empty() || other.seconds >= solution.figures.seconds * (1 - 1e-9)) << other.label;
  }
}

// A device of 1.5 times the power counts as two replicas; balanced, it gets 1.5 times the samples.
TEST_F(GraphPlannersTest, SharesAreBalanced) {
  const DeviceProblem problem = ProblemOf(ClusterRequest({1, 1}, {1, 1.5}, 4, 1, 1000));
  const Candidate solution = Solve(problem);
  ASSERT_TRUE(solution.plan);
  EXPECT_NEAR(solution.plan->placements[0].replicas[0].share, 0.6, 1.0 / problem.samples());
  EXPECT_THAT(solution.explanation,
              testing::HasSubstr("of every 512 samples each replica in proportion takes 307 on p0, 205 on p1"));
  EXPECT_TRUE(std::ranges::any_of(solution.alternatives, [&](const Candidate::Alternative& other) {
    return other.label == "the best plan with whole replicas" && other.seconds > solution.figures.seconds * 1.05;
  }));
}

class GraphSharesTest : public testing::Test {
 protected:
  // Seconds of the best strategy after a search with so many judgements, and balancing afterwards.
  static double Searched(const DeviceProblem& problem, const OperationGroups& groups, bool balances, int64_t calls) {
    const Budget limits = Unlimited();
    const JudgeOf judge(problem);
    GraphTimer timer(*judge, groups, limits, calls);
    base::Rng rng(7);
    GraphQuestion q{problem, groups, timer, rng};
    q.balances = balances;
    TryBaselines(q);
    SearchGraph(q);
    timer.Allow(kMostBalanceSimulations);
    BalanceShares(q);
    return timer.best_seconds();
  }
};

TEST_F(GraphSharesTest, AreAsGoodAsAllSharesOfAThirtySecondOfFewGroups) {
  base::Rng rng(41);
  constexpr int kInstances = 8, kGroups = 2, kParts = 32;
  int near = 0;
  for (int instance = 0; instance < kInstances; ++instance) {
    const DeviceProblem problem = RandomGraphProblem(rng, 2, 4);
    const OperationGroups groups = GroupOperations(problem, kGroups);
    const Budget limits = Unlimited();
    const JudgeOf judge(problem);
    GraphTimer all(*judge, groups, limits, 1'000'000);
    const int actions = ActionCount(problem);
    for (int code = 0; code < actions * actions; ++code) {
      for (int part = 1; part < kParts; ++part) {
        all.Seconds({{code % actions, code / actions}, 0, OrderBy::kRank, {part, kParts - part}});
      }
    }
    near += Searched(problem, groups, true, 400) <= all.best_seconds() * 1.01 ? 1 : 0;
  }
  EXPECT_EQ(near, kInstances);
}

// Layers with many parameters are best on one device, and then the others need shares that even that out.
TEST_F(GraphSharesTest, DecidedInTheSearchAreBetterThanBalancedAfterwards) {
  base::Rng rng(43);
  constexpr int kInstances = 12;
  int shorter = 0, longer = 0;
  double sum = 0;
  for (int instance = 0; instance < kInstances; ++instance) {
    model::PlanRequest request = ClusterRequest({1, 1}, {1, rng.Uniform(1.2, 1.9)}, 8, 1, 0);
    for (model::Layer& layer : request.model.layers) {
      for (model::LayerProfile& times : layer.profiles) times.compute_seconds *= LogUniform(rng, 0.3, 3);
      layer.weight_bytes = LogUniform(rng, 1e5, 1e9);
      layer.output_bytes = LogUniform(rng, 100, 1e5);
    }
    const DeviceProblem problem = ProblemOf(std::move(request));
    const OperationGroups groups = GroupOperations(problem, 8);
    const double with = Searched(problem, groups, true, 600), without = Searched(problem, groups, false, 600);
    shorter += with < without * (1 - 1e-6) ? 1 : 0;
    longer += with > without * (1 + 1e-6) ? 1 : 0;
    sum += std::log(with / without);
  }
  std::printf("%d instances: shorter in %d, longer in %d, mean change %.2f %%\n", kInstances, shorter, longer,
              (std::exp(sum / kInstances) - 1) * 100);
  EXPECT_GT(shorter, longer);
  EXPECT_LT(sum, 0);
}

TEST_F(GraphPlannersTest, WhatFitsOnNoDeviceIsDivided) {
  model::PlanRequest request = ClusterRequest({3}, {1}, 6, 1, 6e9);
  request.resources[0].memory_bytes = 13e9;  // the whole model with its state needs 18 GB
  const Candidate solution = Solve(ProblemOf(request));
  ASSERT_TRUE(solution.plan);
  EXPECT_GT(solution.plan->devices.size(), 1u);
}

TEST_F(GraphPlannersTest, NoPlanHasASentence) {
  model::PlanRequest request = ClusterRequest({2}, {1}, 2, 1, 6e9);
  request.resources[0].memory_bytes = 1e9;
  const Candidate solution = Solve(ProblemOf(request), {.groups = 4, .calls = 60});
  EXPECT_FALSE(solution.plan);
  ASSERT_FALSE(solution.notes.empty());
  EXPECT_THAT(solution.notes.back(), testing::HasSubstr("no plan of operations fits"));
}

// A tiny question has fewer strategies than a planner may simulate: the search ends nevertheless.
TEST_F(GraphPlannersTest, EndsWhereNoneOfFewStrategiesFits) {
  model::PlanRequest request = ClusterRequest({1}, {1}, 1, 1, 6e9);
  request.resources[0].memory_bytes = 1e6;
  EXPECT_FALSE(Solve(ProblemOf(request)).plan);
}

// Each baseline that does not fit has its own reason.
TEST_F(GraphPlannersTest, EveryComparisonThatIsImpossibleSaysWhy) {
  model::PlanRequest request = ClusterRequest({3}, {1}, 6, 1, 6e9);
  request.resources[0].memory_bytes = 13e9;
  const Candidate solution = Solve(ProblemOf(request));
  ASSERT_GE(solution.alternatives.size(), 8u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_THAT(solution.alternatives[i].failure, testing::HasSubstr("of memory")) << solution.alternatives[i].label;
  }
}

// The largest model that is allowed, and nobody waits for its plan.
TEST_F(GraphPlannersTest, LargeQuestionsEndWhenTheyAreStopped) {
  const DeviceProblem problem = ProblemOf(ClusterRequest({300, 200}, {1, 3}, 4096));
  std::stop_source stop;
  stop.request_stop();
  const base::SystemClock clock;
  const auto solution = MakeGraph()->Solve(problem, 1, Budget(clock, base::SteadyTime::max(), stop.get_token()));
  ASSERT_THAT(solution, IsOk());
  EXPECT_FALSE(solution->plan);
  EXPECT_FALSE(solution->complete);
}

TEST_F(GraphPlannersTest, OneDeviceAndOperationsWithoutWork) {
  for (const double seconds : {0.0, 1.0}) {
    const Candidate solution = Solve(ProblemOf(ClusterRequest({1}, {1}, 3, seconds)));
    ASSERT_TRUE(solution.plan);
    EXPECT_EQ(solution.plan->devices.size(), 1u);
  }
}

TEST_F(GraphPlannersTest, AsynchronousSchedulesAreRefused) {
  model::PlanRequest request = ClusterRequest({2}, {1}, 3);
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  EXPECT_THAT(MakeGraph()->Solve(ProblemOf(request), 1, Unlimited()),
              base::StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("must not be ASYNC_1F1B")));
}

TEST_F(GraphPlannersTest, ReplicasThatDifferAreRefused) {
  model::PlanRequest request = ClusterRequest({2}, {1}, 3);
  request.planner.sync.mode = model::SyncMode::kPercentage;
  request.planner.sync.fraction = 0.5;
  EXPECT_THAT(MakeGraph()->Solve(ProblemOf(request), 1, Unlimited()),
              base::StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("must be FULL")));
}

TEST_F(GraphPlannersTest, EqualSeedsGiveEqualPlans) {
  base::Rng rng(43);
  const DeviceProblem problem = RandomGraphProblem(rng, 3, 10);
  EXPECT_EQ(Solve(problem).plan, Solve(problem).plan);
}

}  // namespace
}  // namespace medley::sched
