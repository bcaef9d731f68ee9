// Compares the reasons for infeasibility with an exhaustive search over sets of constraints, and checks their messages.
#include "scheduler-service/planner/reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>

#include "common/base/testing/status_matchers.h"
#include "scheduler-service/planner/conflict.h"
#include "scheduler-service/planner/plan.h"
#include "tests/unit/scheduler-service/planner/random_request.h"

namespace medley::sched {
namespace {

using ::testing::HasSubstr;

const base::SystemClock kClock;
Budget Unbounded() { return Budget(kClock, base::SteadyTime::max(), {}); }

// The size of the smallest conflict, by trying all sets, smallest first; 0 if the request is feasible.
int SmallestBySearch(const model::PlanRequest& request, const std::vector<Constraint>& all) {
  const Budget budget = Unbounded();
  if (CheapestPlan(request, budget)) return 0;
  for (int size = 1; size <= static_cast<int>(all.size()); ++size) {
    for (uint32_t bits = 1; bits < (1u << all.size()); ++bits) {
      if (std::popcount(bits) != size) continue;
      std::vector<Constraint> kept;
      for (size_t i = 0; i < all.size(); ++i) {
        if ((bits >> i & 1u) != 0) kept.push_back(all[i]);
      }
      if (!CheapestPlan(LiftAllBut(request, all, kept), budget)) return size;
    }
  }
  return -1;
}

// The request with the change that a reason suggests.
model::PlanRequest Follow(model::PlanRequest request, const std::vector<Constraint>& all, const model::Reason& reason) {
  for (const Constraint& c : all) {
    if (!IsViolationOf(request, c, reason)) continue;
    const bool goal = c.kind == ConstraintKind::kMinThroughput || c.kind == ConstraintKind::kDeadline ||
                      c.kind == ConstraintKind::kMinUnits;
    SetBound(request, c, goal ? reason.available : reason.needed);
  }
  return request;
}

TEST(ReasonsTest, TheConflictIsASmallestOneAndFollowingAReasonResolvesIt) {
  int infeasible = 0, followed = 0;
  int sizes[8] = {};
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const model::PlanRequest request = RandomRequest(seed, {.most_layers = 4, .most_types = 2, .most_limit = 6});
    const std::vector<Constraint> all = ConstraintsOf(request);
    const int size = SmallestBySearch(request, all);
    const std::vector<Constraint> conflict = SmallestConflict(request, all, Unbounded());
    ASSERT_EQ(static_cast<int>(conflict.size()), size) << "seed " << seed;
    if (size == 0) continue;
    ++infeasible;
    ++sizes[std::min(size, 7)];
    EXPECT_FALSE(CheapestPlan(LiftAllBut(request, all, conflict), Unbounded())) << "seed " << seed;
    const auto problem = Problem::Compile(request);
    const std::vector<model::Reason> reasons = WhyInfeasible(*problem, Unbounded());
    ASSERT_EQ(reasons.size(), conflict.size()) << "seed " << seed;
    for (const model::Reason& reason : reasons) {
      const bool alone = reason.message.find("other constraints still make") == std::string::npos;
      const model::PlanRequest base = alone ? request : LiftAllBut(request, all, conflict);
      EXPECT_TRUE(CheapestPlan(Follow(base, all, reason), Unbounded())) << "seed " << seed << ": " << reason.message;
      ++followed;
      if (reason.constraint != "limit") continue;
      model::Reason less = reason;
      less.needed -= 1;  // one unit less is not enough
      EXPECT_FALSE(CheapestPlan(Follow(base, all, less), Unbounded())) << "seed " << seed << ": " << reason.message;
    }
  }
  std::printf(
      "400 seeds: %d infeasible, smallest conflicts of 1..5 constraints: %d %d %d %d %d, %d "
      "reasons followed\n",
      infeasible, sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], followed);
  EXPECT_GT(infeasible, 100);
  EXPECT_GT(sizes[2] + sizes[3], 20);
}

// One layer, c = 0.064 s for 64 samples, all of it divides: 1000 samples/s a unit.
model::PlanRequest OneLayer() {
  model::PlanRequest r;
  r.model.layers.resize(1);
  r.model.layers[0].profiles = {{"v100", 0.064, 1, 0, 0, 0, 0}};
  r.training.profile_batch_size = 64;
  r.training.samples_per_epoch = 3.6e6;
  r.resources = {{"v100", model::ResourceClass::kGpu, 2, 15}};
  r.constraints.min_throughput = 20000;
  return r;
}

TEST(ReasonsTest, AnUnreachableThroughputNamesTheLimitAndTheMost) {
  const auto problem = Problem::Compile(OneLayer());
  const auto reasons = WhyInfeasible(*problem, Unbounded());
  ASSERT_EQ(reasons.size(), 2u);
  EXPECT_EQ(reasons[0].constraint, "minThroughput");
  EXPECT_NEAR(reasons[0].available, 15000, 0.1);
  EXPECT_EQ(reasons[0].message,
            "reaches at most 15000 samples/s with the other constraints, minThroughput is 20000: lower it to 15000");
  EXPECT_EQ(reasons[1].constraint, "limit");
  EXPECT_EQ(reasons[1].needed, 20);
  EXPECT_EQ(reasons[1].available, 15);
  EXPECT_EQ(reasons[1].message, "needs 20 units of v100, only 15 may be used: raise the limit of v100 to 20");
}

TEST(ReasonsTest, TwoConflictsGiveTheSmallerOneAndSaySo) {
  model::PlanRequest request = OneLayer();
  request.constraints.budget_usd = 1;  // one hour's worth of samples at 1000/s costs 2 USD with any number of units
  const auto reasons = WhyInfeasible(*Problem::Compile(request), Unbounded());
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_EQ(reasons[0].constraint, "budget");
  EXPECT_NEAR(reasons[0].needed, 2, 1e-5);
  EXPECT_THAT(reasons[0].message, HasSubstr("(other constraints still make the request infeasible)"));
}

TEST(ReasonsTest, AnUnreachableThroughputAloneIsAConflict) {
  model::PlanRequest request = OneLayer();
  request.model.layers[0].profiles[0].compute_parallel = 0.5;  // never faster than 2000 samples/s
  const auto reasons = WhyInfeasible(*Problem::Compile(request), Unbounded());
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_EQ(reasons[0].constraint, "minThroughput");
  EXPECT_LT(reasons[0].available, 2000);
}

}  // namespace
}  // namespace medley::sched
