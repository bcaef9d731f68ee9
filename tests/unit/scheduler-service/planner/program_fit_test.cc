// Plans whose program the runtime cannot execute are no answer, and the planner leaves out undo exactly where memory is
// too small for it and suffices without.
#include "scheduler-service/planner/program_fit.h"
#include "common/model/plan_result.h"
#include "scheduler-service/planner/builtin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planner/stage_planner.h"
#include "tests/unit/scheduler-service/planner/random_request.h"

namespace medley::sched {
namespace {

// One operation with 1 MB of parameters: 3 MB with gradient and optimizer state, and 2 MB more with undo.
model::PlanRequest OneOperation(double memory_bytes) {
  model::PlanRequest request = RandomRequest(3, {.most_layers = 1, .most_types = 1});
  request.constraints = {};
  request.constraints.min_units = 1;
  request.server_type.clear();
  request.resources = {{"cpu", model::ResourceClass::kCpu, 1, 4, memory_bytes}};
  request.training.state_factor = 3;
  base::Rng rng(9);
  model::Layer layer;
  layer.kind = "FULLY_CONNECTED";
  layer.weight_bytes = 1e6;
  layer.profiles = {RandomProfile(rng, "cpu", 1, false)};
  request.model.layers = {layer};
  return request;
}

model::PlanResult Planned(const model::PlanRequest& request) {
  const base::FakeClock clock;
  const auto result = MakePlan(request, {}, BuiltinPlanners(), clock, {});
  EXPECT_THAT(result, base::IsOk());
  EXPECT_TRUE(result.ok() && result->execution_plan.has_value());
  return result.value_or(model::PlanResult{});
}

TEST(ProgramFitTest, OnlyWhereMemoryIsShort) {
  for (const double plenty : {0.0, 8e6}) {
    const model::PlanResult result = Planned(OneOperation(plenty));
    EXPECT_FALSE(result.execution_plan->schedule.without_undo) << plenty;
    EXPECT_THAT(result.notes, testing::IsEmpty());
  }
  const model::PlanResult result = Planned(OneOperation(4.5e6));
  EXPECT_TRUE(result.execution_plan->schedule.without_undo);
  EXPECT_THAT(result.notes, testing::ElementsAre(testing::HasSubstr("do not fit in memory")));
}

TEST(ProgramFitTest, WhatFitsNeitherWayIsLeftAlone) {
  model::PlanRequest request = OneOperation(4.5e6);
  const model::ExecutionPlan plan = *Planned(request).execution_plan;
  EXPECT_TRUE(FitsOnlyWithoutUndo(plan, request));
  request.resources[0].memory_bytes = 2e6;
  EXPECT_FALSE(FitsOnlyWithoutUndo(plan, request));
  request.resources[0].memory_bytes = 4.5e6;
  request.planner.sync.mode = model::SyncMode::kNone;
  EXPECT_FALSE(FitsOnlyWithoutUndo(plan, request));
}

// Puts every layer into a stage of its own, on one pool after the other.
class Alternating final : public StagePlanner {
 public:
  std::string_view name() const override { return "alternating"; }
  std::string_view description() const override { return "for tests"; }
  absl::StatusOr<Solution> SolveStages(const Problem& problem, uint64_t, const Budget&) const override {
    std::vector<StageChoice> stages;
    for (int layer = 0; layer < problem.layers(); ++layer) stages.push_back({layer, layer, layer % 2, 1});
    Solution solution;
    solution.best = Provisioned{stages, ScoreOf(problem, stages)};
    return solution;
  }
};

TEST(ProgramFitTest, APlanWithoutAProgramIsNotAnAnswer) {
  model::PlanRequest request = OneOperation(0);
  request.resources.push_back(request.resources[0]);
  request.resources[1].name = "gpu";
  request.model.layers[0].profiles.push_back(request.model.layers[0].profiles[0]);
  request.model.layers[0].profiles[1].resource_type = "gpu";
  request.model.layers.assign(3, request.model.layers[0]);
  request.model.layers[2].inputs = {0, 1};
  request.planner.name = "alternating";
  Registry registry = BuiltinPlanners();
  registry.Add(std::make_unique<Alternating>());
  const base::FakeClock clock;
  ASSERT_TRUE(MakePlan(request, {}, registry, clock, {})->plan.has_value());
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  const auto refused = MakePlan(request, {}, registry, clock, {});
  ASSERT_THAT(refused, base::IsOk());
  EXPECT_FALSE(refused->plan.has_value());
  EXPECT_FALSE(refused->execution_plan.has_value());
  ASSERT_EQ(refused->reasons.size(), 1u);
  EXPECT_EQ(refused->reasons[0].constraint, "program");
  EXPECT_THAT(refused->reasons[0].message, testing::HasSubstr("ASYNC_1F1B needs stages that form a chain"));
}

}  // namespace
}  // namespace medley::sched
