#include "reproductions/thesis/groups_planner.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "scheduler-service/planning/candidate.h"
#include "tests/unit/scheduler-service/devices/random_cluster.h"

namespace medley::reproductions::thesis {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

absl::StatusOr<sched::Candidate> Solve(model::PlanRequest request, const std::string& groups, uint64_t seed) {
  request.planner.options = {{"groups", groups}};
  const base::SystemClock clock;
  return MakeGroupsPlanner()->Solve(sched::ProblemOf(request), seed, {clock, base::SteadyTime::max(), {}});
}

TEST(GroupsPlannerTest, EachKindOfGroupsMakesAPlan) {
  base::Rng rng(33);
  const model::PlanRequest request = sched::RandomClusterRequest(rng, 12);
  for (const char* groups : {"equal-power", "links", "pools", "random", "one-ring"}) {
    const auto solution = Solve(request, groups, 1);
    ASSERT_THAT(solution, IsOk()) << groups;
    ASSERT_TRUE(solution->plan) << groups;
    EXPECT_THAT(model::Validate(*solution->plan, static_cast<int>(request.model.layers.size())), IsOk());
    if (std::string_view(groups) != "one-ring") continue;
    for (const model::Placement& placement : solution->plan->placements) {
      EXPECT_TRUE(placement.sync.hierarchy.empty()) << "one ring has no groups";
    }
  }
}

TEST(GroupsPlannerTest, EqualSeedsGiveEqualPlans) {
  base::Rng rng(33);
  const model::PlanRequest request = sched::RandomClusterRequest(rng, 30);
  EXPECT_EQ(*Solve(request, "random", 4)->plan, *Solve(request, "random", 4)->plan);
}

TEST(GroupsPlannerTest, AnUnknownKindIsRefused) {
  base::Rng rng(1);
  EXPECT_THAT(
      Solve(sched::RandomClusterRequest(rng, 4), "equal", 1),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("planner.options.groups: must be one of equal-power, links, pools, random, one-ring")));
}

}  // namespace
}  // namespace medley::reproductions::thesis
