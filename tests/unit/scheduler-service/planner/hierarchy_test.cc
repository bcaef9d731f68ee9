// Groups of replicas: their sizes, their device ids over all stages, and what the runtime's compiler makes of them.
#include "scheduler-service/planner/hierarchy.h"
#include "scheduler-service/planner/builtin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/executable.h"
#include "common/model/plan_result.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/execution_plan.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planner/planners.h"
#include "tests/unit/scheduler-service/planner/random_request.h"

namespace medley::sched {
namespace {

using model::Grouping;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<size_t> Sizes(int units) {
  std::vector<size_t> sizes;
  for (const model::HierarchyLevel& level : MakeHierarchy(Grouping::kAuto, {{"cpu", units, 1}}, {})) {
    for (const auto& group : level.groups) sizes.push_back(group.size());
  }
  return sizes;
}

TEST(HierarchyTest, AutoHasAboutTheSquareRoot) {
  for (int units = 1; units < 4; ++units) EXPECT_THAT(Sizes(units), IsEmpty()) << units;
  EXPECT_THAT(Sizes(4), ElementsAre(2, 2));
  EXPECT_THAT(Sizes(5), ElementsAre(2, 2, 1));
  EXPECT_THAT(Sizes(7), ElementsAre(4, 3));
  EXPECT_THAT(Sizes(9), ElementsAre(3, 3, 3));
  EXPECT_THAT(Sizes(100), SizeIs(10));
}

TEST(HierarchyTest, NoGroupHasDevicesOfTwoPools) {
  const std::vector<model::Group> pools = {{"a", 3, 0.5}, {"b", 2, 0.5}};
  const auto levels = MakeHierarchy(Grouping::kAuto, pools, {{"b", 7}});
  ASSERT_THAT(levels, SizeIs(1));
  EXPECT_THAT(levels[0].groups, ElementsAre(ElementsAre("a/0", "a/1"), ElementsAre("a/2"), ElementsAre("b/7", "b/8")));
  const auto by_pool = MakeHierarchy(Grouping::kPool, pools, {{"b", 7}});
  ASSERT_THAT(by_pool, SizeIs(1));
  EXPECT_THAT(by_pool[0].groups, ElementsAre(ElementsAre("a/0", "a/1", "a/2"), ElementsAre("b/7", "b/8")));
}

TEST(HierarchyTest, GroupsThatChangeNothingAreLeftOut) {
  EXPECT_THAT(MakeHierarchy(Grouping::kNone, {{"a", 9, 1}}, {}), IsEmpty());
  EXPECT_THAT(MakeHierarchy(Grouping::kPool, {{"a", 9, 1}}, {}), IsEmpty());
  EXPECT_THAT(MakeHierarchy(Grouping::kPool, {{"a", 1, 0.5}, {"b", 1, 0.5}}, {}), IsEmpty());
}

model::PlanRequest GroupsRequest() {
  model::PlanRequest request = RandomRequest(3, {.most_layers = 1, .most_types = 1});
  request.constraints = {};
  request.constraints.min_units = 4;
  request.constraints.max_units = 12;
  request.server_type.clear();
  request.resources = {{"cpu", model::ResourceClass::kCpu, 1, 100}};
  base::Rng rng(9);
  model::Layer layer;
  layer.kind = "FULLY_CONNECTED";
  layer.weight_bytes = 1e4;
  layer.profiles = {RandomProfile(rng, "cpu", 1, false)};
  request.model.layers.assign(2, layer);
  return request;
}

TEST(HierarchyTest, ThePlanNamesDevicesOverAllStages) {
  model::PlanRequest request = GroupsRequest();
  request.planner.sync.hierarchy = Grouping::kAuto;
  const auto problem = Problem::Compile(request);
  ASSERT_THAT(problem, base::IsOk());
  const model::ExecutionPlan plan = BuildExecutionPlan(*problem, {{0, 0, 0, 5}, {1, 1, 0, 4}});
  EXPECT_THAT(model::Validate(plan, 2), base::IsOk());
  EXPECT_THAT(model::CheckExecutable(plan), base::IsOk());
  const auto& groups = plan.stages[1].syncs[0].sync.hierarchy[0].groups;
  EXPECT_THAT(groups, ElementsAre(ElementsAre("cpu/5", "cpu/6"), ElementsAre("cpu/7", "cpu/8")));
  EXPECT_TRUE(std::ranges::any_of(plan.algorithms, [](const auto& rule) { return rule.ranks == 2; }));
}

TEST(HierarchyTest, PlansOfReplicasThatDifferHaveGroups) {
  model::PlanRequest request = GroupsRequest();
  request.planner.sync = {model::SyncMode::kPercentage, 0.5, 0.02, Grouping::kAuto};
  const base::FakeClock clock;
  const auto result = MakePlan(request, {}, BuiltinPlanners(), clock, {});
  ASSERT_THAT(result, base::IsOk());
  ASSERT_TRUE(result->execution_plan.has_value());
  EXPECT_GE(result->execution_plan->stages[0].syncs[0].sync.hierarchy[0].groups.size(), 2U);

  request.planner.sync.hierarchy = Grouping::kPool;
  EXPECT_THAT(MakePlan(request, {}, BuiltinPlanners(), clock, {}),
              base::StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("planner.sync.hierarchy: ")));
}

TEST(HierarchyTest, ANoteSaysWhyThereAreNoGroups) {
  model::PlanRequest request = GroupsRequest();
  request.planner.sync.hierarchy = Grouping::kPool;
  const base::FakeClock clock;
  const auto result = MakePlan(request, {}, BuiltinPlanners(), clock, {});
  ASSERT_THAT(result, base::IsOk());
  EXPECT_THAT(result->notes, testing::Contains(testing::HasSubstr("no groups by pool")));
}

}  // namespace
}  // namespace medley::sched
