#include "reproductions/heterog/bench/graph/brute_force.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "common/base/rng.h"
#include "reproductions/heterog/bench/graph/asked.h"
#include "tests/unit/scheduler-service/graph/graphs.h"

namespace medley::reproductions::heterog {
namespace {

constexpr int kDevices = 3, kGroups = 3, kInstances = 24;
constexpr int64_t kAllCalls = int64_t{1} << 40;

// The least seconds of all strategies, none left out.
double Enumerate(const sched::GraphQuestion& q) {
  const int actions = sched::ActionCount(q.problem);
  sched::GraphStrategy strategy = sched::Uniform(q, 0, 0, sched::OrderBy::kRank);
  double best = sched::kForever;
  for (int all = 0; all < actions * actions * actions; ++all) {
    for (int g = 0, left = all; g < kGroups; ++g, left /= actions) {
      strategy.actions[static_cast<size_t>(g)] = left % actions;
    }
    for (const int64_t bytes : sched::BucketSizes(q.problem)) {
      strategy.bucket_bytes = bytes;
      for (const sched::OrderBy order : sched::kOrders) {
        strategy.order = order;
        best = std::min(best, q.timer.Seconds(strategy));
      }
    }
  }
  return best;
}

// A bound that leaves out too much would hide better strategies from every comparison with the brute force.
TEST(BruteForceTest, LeavesOutNothingThatIsBetter) {
  int64_t timed = 0, all = 0;
  for (uint64_t seed = 1; seed <= kInstances; ++seed) {
    base::Rng rng(seed);
    const sched::DeviceProblem problem = sched::RandomGraphProblem(rng, kDevices, kGroups + 2);
    Asked pruned(problem, kGroups, 1, kAllCalls), whole(problem, kGroups, 1, kAllCalls);
    ASSERT_EQ(whole.groups.count(), kGroups);
    const double best = Enumerate(whole.q);
    EXPECT_NEAR(BruteForce(pruned.q).Best(sched::kForever), best, 1e-9 * best) << "seed " << seed;
    timed += pruned.timer.calls();
    all += whole.timer.calls();
  }
  std::printf("%lld of %lld strategies timed\n", static_cast<long long>(timed), static_cast<long long>(all));
  EXPECT_LT(timed, all);
}

}  // namespace
}  // namespace medley::reproductions::heterog
