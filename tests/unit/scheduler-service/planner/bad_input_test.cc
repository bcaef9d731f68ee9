// Invalid requests: MakePlan, which all front ends use, rejects each one with the path of the field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "common/base/testing/status_matchers.h"
#include "common/model/executable.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/profile.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/pareto.h"
#include "scheduler-service/planner/plan.h"

namespace medley::sched {
namespace {

using model::PlanRequest;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

PlanRequest Request(int layers = 2) {
  PlanRequest r;
  for (int i = 0; i < layers; ++i) {
    model::Layer layer;
    layer.name = fmt::format("l{}", i);
    layer.weight_bytes = 1000;
    layer.profiles = {{"cpu", 0.01, 0.9, 0.001, 0.001, 0.5, 0}, {"gpu", 0.001, 0.9, 0.001, 0.001, 0.5, 0}};
    r.model.layers.push_back(layer);
  }
  r.training.profile_batch_size = 64;
  r.training.samples_per_epoch = 1e6;
  r.resources = {{"cpu", model::ResourceClass::kCpu, 0.04, 100}, {"gpu", model::ResourceClass::kGpu, 2.42, 8}};
  r.planner.time_budget_seconds = 5;
  return r;
}

absl::StatusOr<model::PlanResult> Plan(const PlanRequest& request) {
  const base::SystemClock clock;
  return MakePlan(request, {}, BuiltinPlanners(), clock, {});
}

struct Case {
  const char* path;
  std::function<void(PlanRequest&)> spoil;
};

model::LayerProfile& ProfileOf(PlanRequest& r) { return r.model.layers[1].profiles[0]; }

TEST(BadInputTest, EachErrorNamesTheField) {
  const Case cases[] = {
      {"planner.schedule: ASYNC_1F1B needs a model without embedding tables on parameter servers",
       [](auto& r) {
         r.planner.schedule = model::ScheduleKind::kAsync1F1B;
         r.server_type = r.resources[0].name;
         ProfileOf(r).server_seconds = 1;
       }},
      {"planner.sync.anomaly.window: must be 4 to 1000 steps, is 3",
       [](auto& r) {
         r.planner.sync.detector = model::AnomalyDetector::kWindow;
         r.planner.sync.anomaly_window = 3;
       }},
      {"planner.sync.anomaly.threshold: must be greater than 0",
       [](auto& r) {
         r.planner.sync.detector = model::AnomalyDetector::kRunningMean;
         r.planner.sync.anomaly_threshold = kNan;
       }},
      {"planner.maxStaleness: must be 0", [](auto& r) { r.planner.max_staleness = 1; }},
      {"model.layers: must not be empty", [](auto& r) { r.model.layers.clear(); }},
      {"model.layers: 10000 layers", [](auto& r) { r.model.layers.resize(10000, r.model.layers[0]); }},
      {"model.layers[1].profiles[0].computeSeconds", [](auto& r) { ProfileOf(r).compute_seconds = kNan; }},
      {"model.layers[1].profiles[0].computeSeconds", [](auto& r) { ProfileOf(r).compute_seconds = kInf; }},
      {"model.layers[1].profiles[0].computeSeconds", [](auto& r) { ProfileOf(r).compute_seconds = -1; }},
      {"model.layers[1].profiles[0].computeParallel", [](auto& r) { ProfileOf(r).compute_parallel = 1.5; }},
      {"model.layers[1].profiles[0].computeParallel", [](auto& r) { ProfileOf(r).compute_parallel = kNan; }},
      {"model.layers[1].profiles[0].undividedParallel", [](auto& r) { ProfileOf(r).undivided_parallel = 1.5; }},
      {"model.layers[1].profiles[0].syncSeconds", [](auto& r) { ProfileOf(r).sync_seconds = -kInf; }},
      {"model.layers[1].profiles[0].transferSeconds", [](auto& r) { ProfileOf(r).transfer_seconds = kNan; }},
      {"model.layers[1].profiles[0].serverSeconds", [](auto& r) { ProfileOf(r).server_seconds = -0.1; }},
      {"model.layers[1].profiles: must not be empty", [](auto& r) { r.model.layers[1].profiles.clear(); }},
      {"model.layers[1].profiles[1].resourceType: 'cpu' appears twice",
       [](auto& r) { r.model.layers[1].profiles[1].resource_type = "cpu"; }},
      {"model.layers[0].weightBytes", [](auto& r) { r.model.layers[0].weight_bytes = kNan; }},
      {"model.layers[0].inputs[0]", [](auto& r) { r.model.layers[0].inputs = {0}; }},
      {"computeSeconds > 0",
       [](auto& r) {
         for (auto& layer : r.model.layers) {
           for (auto& p : layer.profiles) p.compute_seconds = 0;
         }
       }},
      {"resources[1].name: 'cpu' appears twice", [](auto& r) { r.resources[1].name = "cpu"; }},
      {"resources: must not be empty", [](auto& r) { r.resources.clear(); }},
      {"resources: 65 given", [](auto& r) { r.resources.resize(65, r.resources[0]); }},
      {"resources[0].pricePerUnitHour", [](auto& r) { r.resources[0].price_per_unit_hour = kInf; }},
      {"resources[0].limit", [](auto& r) { r.resources[0].limit = -1; }},
      {"resources[0].memoryBytes", [](auto& r) { r.resources[0].memory_bytes = -1; }},
      {"resources[0].computedBytesPerMessage", [](auto& r) { r.resources[0].computed_bytes_per_message = -1; }},
      {"resources[0].processorSecondsPerMessageInARow",
       [](auto& r) { r.resources[0].processor_seconds_per_message_in_a_row = kNan; }},
      {"training.profileBatchSize", [](auto& r) { r.training.profile_batch_size = 0; }},
      {"training.samplesPerEpoch", [](auto& r) { r.training.samples_per_epoch = 0; }},
      {"training.epochs", [](auto& r) { r.training.epochs = kInf; }},
      {"constraints.minThroughput", [](auto& r) { r.constraints.min_throughput = kNan; }},
      {"constraints.minUnits", [](auto& r) { r.constraints.min_units = 0; }},
      {"serverType: 'tpu' is not in resources", [](auto& r) { r.server_type = "tpu"; }},
      {"serverType: must be set", [](auto& r) { ProfileOf(r).server_seconds = 1; }},
      {"planner.name: 'magic' is unknown", [](auto& r) { r.planner.name = "magic"; }},
      {"planner.timeBudgetSeconds", [](auto& r) { r.planner.time_budget_seconds = kNan; }},
      {"planner.timeBudgetSeconds", [](auto& r) { r.planner.time_budget_seconds = 0; }},
  };
  ASSERT_THAT(Plan(Request()), base::IsOk());
  for (const Case& c : cases) {
    PlanRequest request = Request();
    c.spoil(request);
    const auto result = Plan(request);
    ASSERT_THAT(result, base::StatusIs(absl::StatusCode::kInvalidArgument)) << c.path;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(c.path));
  }
}

// 4,096 layers make 16 million possible stages, which no planner may store.
TEST(BadInputTest, AModelWithMoreStagesThanExactStoresHasAPlanAndABound) {
  PlanRequest request = Request(4096);
  const auto exact = Plan(request);
  ASSERT_THAT(exact, base::IsOk());
  ASSERT_TRUE(exact->plan.has_value());
  EXPECT_GT(*exact->lower_bound_usd, 0);
  EXPECT_LE(*exact->lower_bound_usd, exact->plan->cost_usd);
  const base::SystemClock clock;
  EXPECT_THAT(MakePareto(request, {}, 8, clock, {}, base::SteadyTime::max()),
              base::StatusIs(absl::StatusCode::kInvalidArgument));
  request.planner.name = "gpu-only";
  const auto single = Plan(request);
  ASSERT_THAT(single, base::IsOk());
  ASSERT_TRUE(single->plan.has_value());
  EXPECT_LE(exact->plan->cost_usd, single->plan->cost_usd * (1 + 1e-9));
}

// The runtime accepts it (common/model/executable.h), and it is the same wherever a stage has replicas.
TEST(BadInputTest, PlansSayHowSlowReplicasAreDetected) {
  PlanRequest request = Request();
  request.constraints.min_throughput = 20000;  // needs several units
  for (const bool detects : {false, true}) {
    if (detects) request.planner.sync.detector = model::AnomalyDetector::kWindow;
    const auto result = Plan(request);
    ASSERT_THAT(result, base::IsOk());
    ASSERT_TRUE(result->execution_plan.has_value());
    EXPECT_THAT(model::CheckExecutable(*result->execution_plan), base::IsOk());
    int with = 0;
    for (const model::Stage& stage : result->execution_plan->stages) {
      for (const model::OperationSync& sync : stage.syncs) {
        with += sync.sync.detector == model::AnomalyDetector::kWindow && sync.sync.anomaly_window == 16 ? 1 : 0;
      }
    }
    EXPECT_EQ(with > 0, detects);
  }
}

// Every planner handles edge cases: it returns a plan, reasons or an error.
TEST(BadInputTest, EveryPlannerHandlesEdgeCases) {
  const Registry registry = BuiltinPlanners();
  for (const Planner* planner : registry.Of(Supply::kUnits)) {
    for (const int layers : {1, 300}) {
      for (const int limit : {0, 1, 1000000}) {
        PlanRequest request = Request(layers);
        request.planner.name = std::string(planner->name());
        request.planner.time_budget_seconds = 0.3;
        for (auto& r : request.resources) r.limit = limit;
        const auto result = Plan(request);
        if (!result.ok()) {
          EXPECT_TRUE(absl::IsInvalidArgument(result.status()) || absl::IsDeadlineExceeded(result.status()))
              << planner->name() << ": " << result.status();
          continue;
        }
        EXPECT_EQ(result->plan.has_value(), result->reasons.empty()) << planner->name();
        EXPECT_EQ(result->plan.has_value(), limit > 0) << planner->name() << " " << layers << " " << limit;
      }
    }
  }
}

}  // namespace
}  // namespace medley::sched
