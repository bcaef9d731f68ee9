// From a request with the objective step time to its answer, and what is refused.
#include "scheduler-service/planning/answer_on_devices.h"
#include "common/model/plan_result.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "common/base/testing/status_matchers.h"
#include "common/model/value_text.h"
#include "scheduler-service/devices/device_simulator.h"
#include "scheduler-service/hierarchy/hierarchy_planner.h"
#include "tests/unit/scheduler-service/devices/random_cluster.h"

namespace medley::sched {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

absl::StatusOr<model::PlanResult> Plan(model::PlanRequest request) {
  static const base::SystemClock clock;
  request.planner.name = "hierarchy";
  return AnswerOnDevices(request, *MakeHierarchyPlanner(), clock, {});
}

TEST(AnswerOnDevicesTest, AnswersWithThePlanAndWhatItIsComparedWith) {
  const auto result = Plan(ClusterRequest({2, 1}, {1, 4}));
  ASSERT_THAT(result, IsOk());
  ASSERT_TRUE(result->step_time);
  EXPECT_FALSE(result->plan);
  const model::StepTimePlan& plan = *result->step_time;
  EXPECT_NEAR(plan.seconds, 512.0 / plan.throughput, 1e-9);
  EXPECT_LT(plan.seconds, 0.5);  // two equal devices alone take at least that
  EXPECT_THAT(plan.explanation, HasSubstr("2 devices (p0-0, p0-1, 0.001953125 s a sample each): take part"));
  ASSERT_GE(plan.alternatives.size(), 2u);
  EXPECT_NEAR(plan.alternatives[plan.alternatives.size() - 2].seconds, 1, 1e-6);  // one device
  EXPECT_GT(plan.alternatives.back().seconds, 4.0 / 3);                           // equal shares wait for the slow one
  EXPECT_THAT(model::Validate(*result->execution_plan, 4), IsOk());
  // The answer survives the wire.
  const auto back = model::ParsePlanResult(model::PlanResultJson(*result));
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(back->step_time, result->step_time);
  EXPECT_EQ(back->execution_plan, result->execution_plan);
}

TEST(AnswerOnDevicesTest, TheRequestSurvivesTheWire) {
  model::PlanRequest request = ClusterRequest({2, 1}, {1, 4});
  request.planner.sync.hierarchy = model::Grouping::kLinks;
  request.resources[0].processor_seconds_per_message = 2e-5;
  request.resources[1].processor_seconds_per_byte = 1e-9;
  auto json = nlohmann::json::parse(model::PlanRequestJson(request));
  const auto back = model::ParsePlanRequest(json.dump());
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(back->objective, model::Objective::kStepTime);
  EXPECT_EQ(back->cluster, request.cluster);
  EXPECT_EQ(back->resources, request.resources);
  EXPECT_EQ(back->planner.sync.hierarchy, model::Grouping::kLinks);
  json["planner"].erase("name");
  EXPECT_EQ(model::ParsePlanRequest(json.dump())->planner.name, "auto");
}

TEST(AnswerOnDevicesTest, DevicesWithoutMemoryAreAReason) {
  model::PlanRequest request = ClusterRequest({2}, {1});
  request.resources[0].memory_bytes = 1e6;
  const auto result = Plan(request);
  ASSERT_THAT(result, IsOk());
  EXPECT_FALSE(result->step_time);
  ASSERT_EQ(result->reasons.size(), 1u);
  EXPECT_THAT(result->reasons[0].message, HasSubstr("the model fits on no set of devices"));
}

// Two trainers that send each other every sample's activations.
TEST(AnswerOnDevicesTest, MessagesTakeProcessorTime) {
  model::PlanRequest request = ClusterRequest({1, 1}, {1, 1});
  model::ExecutionPlan plan;
  plan.schedule = {model::ScheduleKind::kSync1F1B, 2};
  plan.devices = request.cluster.devices;
  plan.placements = {{{{0, 2}}, {{"p0-0", 1}}, {}}, {{{2, 4}}, {{"p1-0", 1}}, {}}};
  const auto seconds = [&] {
    const auto problem = DeviceProblem::Compile(request);
    EXPECT_THAT(problem, IsOk());
    return DeviceSimulator(*problem, std::stop_token()).Seconds(plan).value_or(-1);
  };
  const double without = seconds();
  EXPECT_GT(without, 0);
  request.resources[0].processor_seconds_per_message = 0.05;
  // Both micro-batches leave the first trainer, and their gradients come back.
  EXPECT_GT(seconds(), without + 0.05);
  EXPECT_LE(seconds(), without + 4 * 0.05 + 1e-9);
}

TEST(AnswerOnDevicesTest, RefusesInvalidQuestions) {
  const auto refused = [](auto change, std::string why) {
    model::PlanRequest request = ClusterRequest({2, 1}, {1, 4});
    change(request);
    EXPECT_THAT(Plan(request), StatusIs(kInvalid, HasSubstr(why)));
  };
  refused([](auto& r) { r.cluster.devices.clear(); }, "cluster.devices: must not be empty");
  refused([](auto& r) { r.cluster.devices[1].pool = "p9"; }, "cluster.devices[1].pool: 'p9' is not in resources");
  refused([](auto& r) { r.cluster.links[0].bytes_per_second = 0; }, "cluster.links[0].bytesPerSecond: must be finite");
  refused([](auto& r) { r.resources[1].processor_seconds_per_byte = -1; },
          "resources[1].processorSecondsPerByte: must be finite and not negative, is -1");
  refused([](auto& r) { r.cluster.links.clear(); }, "cluster.links: no link connects devices 'p0-0' and 'p0-1'");
  refused([](auto& r) { r.model.layers[1].inputs = {2}; },  // a cycle
          "model.layers[1].inputs[0]: must be an earlier operation, or -1 for the batch, is 2");
  refused([](auto& r) { r.model.layers.resize(20'000, r.model.layers[1]); },
          "model.layers: 20000 layers, at most 4096 are allowed");
  refused([](auto& r) { r.model.layers[2].profiles.pop_back(); },
          "model.layers[2].profiles: none for pool 'p1' of the cluster");
  refused(
      [](auto& r) {
        r.model.layers[1].profiles[0].server_seconds = 1;
        r.server_type = "p0";
      },
      "model.layers[1].profiles: objective OBJECTIVE_STEP_TIME needs a model without parameter servers");
  refused([](auto& r) { r.planner.schedule = model::ScheduleKind::kAsync1F1B; },
          "planner hierarchy makes no pipelines");
  refused(
      [](auto& r) {
        r.objective = model::Objective::kCost;
        r.training.samples_per_epoch = 1;
        r.cluster.devices.clear();
      },
      "cluster.devices: must not be empty where there are links");
  refused([](auto& r) { r.constraints.deadline_seconds = 60; }, "training.samplesPerEpoch: samplesPerEpoch * epochs");
}

}  // namespace
}  // namespace medley::sched
