#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "cli/cluster/calibration.h"
#include "cli/cluster/comparison.h"
#include "cli/cluster/job_plan_request.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/plan_result.h"
#include "common/model/provisioned_plan.h"
#include "operator/records/prediction_spread.h"
#include "tests/unit/cli/cluster/objects.h"

namespace medley::cli {
namespace {

using base::StatusIs;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_objects::Json;

kube::Object Profile(const std::string& pool) {
  Json layers = Json::array();
  for (const char* name : {"emb", "fc1", "loss"}) {
    layers.push_back({{"name", name},
                      {"kind", "FULLY_CONNECTED"},
                      {"outputBytes", 4},
                      {"weightBytes", 1000},
                      {"profiles", {{{"resourceType", pool}, {"computeSeconds", 0.01}, {"computeParallel", 0.9}}}}});
  }
  const Json profile = {{"id", "p-" + pool},
                        {"profileBatchSize", 512},
                        {"samplesPerEpoch", 976800},
                        {"model", {{"name", "ctrdnn"}, {"layers", layers}}}};
  return kube::Object(Json{{"metadata", {{"name", "medley-profile-x-" + pool}, {"namespace", "team"}}},
                           {"data", {{"profile.json", profile.dump()}}}});
}

JobObjects Objects() {
  JobObjects objects;
  objects.job = testing_objects::Job(testing_objects::RunningStatus());
  objects.pools = testing_objects::Pools();
  objects.profiles = {{"cpu-spot", Profile("cpu-spot")}, {"v100-spot", Profile("v100-spot")}};
  objects.pods = {testing_objects::Pod("adult-0-v100-spot-0", "trainer", "v100-spot", "1", {{"phase", "Running"}}),
                  testing_objects::Pod("adult-1-v100-spot-9", "trainer", "v100-spot", "1", {{"phase", "Failed"}})};
  const auto job = ops::TrainingJob::FromObject(objects.job);
  objects.plan = ops::PlanConfigMap(*job, testing_objects::Record());
  return objects;
}

TEST(JobPlanRequestTest, MatchesTheOperatorsRequest) {
  const auto job_request = BuildJobPlanRequest(Objects(), false, testing_objects::Now());
  ASSERT_THAT(job_request, base::IsOk());
  const model::PlanRequest& request = job_request->request;
  ASSERT_EQ(request.resources.size(), 2u);
  EXPECT_EQ(request.resources[0].name, "cpu-spot") << "in the order of spec.resources.pools";
  EXPECT_DOUBLE_EQ(request.resources[0].price_per_unit_hour, 0.04);
  EXPECT_FALSE(request.resources[0].offering);
  EXPECT_EQ(request.resources[0].limit, 10) << "the free units";
  EXPECT_EQ(request.resources[1].limit, 8) << "the free units and those that the job holds, without failed pods";
  EXPECT_EQ(request.server_type, "cpu-spot");
  EXPECT_DOUBLE_EQ(request.constraints.min_throughput, 20000);
  EXPECT_DOUBLE_EQ(request.constraints.deadline_seconds, 7200 - 40 * 60) << "40 minutes of the deadline have passed";
  EXPECT_DOUBLE_EQ(request.constraints.budget_usd, 5 - 0.83);
  EXPECT_DOUBLE_EQ(request.training.remaining_samples, 2930400 - 1203200);
  EXPECT_EQ(request.planner.name, "auto");
  EXPECT_EQ(job_request->catalog_revision, 17);
  EXPECT_EQ(job_request->price_time, "2026-11-21T12:05:00Z");
  EXPECT_TRUE(job_request->notes.empty());
  EXPECT_THAT(model::Validate(request), base::IsOk());
}

TEST(JobPlanRequestTest, OfferingsStayForAPriceFile) {
  const auto job_request = BuildJobPlanRequest(Objects(), true, testing_objects::Now());
  ASSERT_THAT(job_request, base::IsOk());
  ASSERT_TRUE(job_request->request.resources[0].offering);
  EXPECT_EQ(job_request->request.resources[0].price_per_unit_hour, 0);
}

TEST(JobPlanRequestTest, PoolsWithoutProfileOrPriceAreLeftOutWithANote) {
  JobObjects objects = Objects();
  objects.profiles.erase("v100-spot");
  const auto job_request = BuildJobPlanRequest(objects, false, testing_objects::Now());
  ASSERT_THAT(job_request, base::IsOk());
  EXPECT_EQ(job_request->request.resources.size(), 1u);
  EXPECT_THAT(job_request->notes,
              ElementsAre(HasSubstr("pool v100-spot is left out of the plan: the job's layers have not been")));
  objects.profiles.clear();
  EXPECT_THAT(BuildJobPlanRequest(objects, false, testing_objects::Now()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("job team/adult")));
  objects.pools.erase(objects.pools.begin());
  EXPECT_THAT(BuildJobPlanRequest(objects, false, testing_objects::Now()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("pool v100-spot is left out of the plan: no ResourcePool has this name")));
}

TEST(JobPlanRequestTest, AFinishedJobIsPlannedFromTheBeginning) {
  JobObjects objects = Objects();
  Json status = testing_objects::RunningStatus();
  status["conditions"] = Json::array({testing_objects::Condition("Complete", "True", "TrainingComplete", "all")});
  objects.job = testing_objects::Job(status);
  const auto job_request = BuildJobPlanRequest(objects, false, testing_objects::Now());
  ASSERT_THAT(job_request, base::IsOk());
  EXPECT_DOUBLE_EQ(job_request->request.constraints.deadline_seconds, 7200);
  EXPECT_DOUBLE_EQ(job_request->request.training.remaining_samples, 0);
  EXPECT_THAT(job_request->notes, Contains(HasSubstr("the job has finished")));
}

TEST(JobPlanRequestTest, APassedDeadlineIsNoted) {
  const auto job_request = BuildJobPlanRequest(Objects(), false, testing_objects::Now() + base::seconds(7200));
  ASSERT_THAT(job_request, base::IsOk());
  EXPECT_THAT(job_request->notes, Contains(HasSubstr("deadline has passed")));
}

TEST(JobPlanRequestTest, BrokenObjectsAreNamed) {
  JobObjects objects = Objects();
  objects.profiles["cpu-spot"].mutable_json()["data"]["profile.json"] = "{";
  EXPECT_THAT(BuildJobPlanRequest(objects, false, testing_objects::Now()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the stored profile of pool cpu-spot")));
  objects = Objects();
  objects.plan->mutable_json()["data"] = Json::object();
  const auto job_request = BuildJobPlanRequest(objects, false, testing_objects::Now());
  ASSERT_THAT(job_request, base::IsOk());
  EXPECT_FALSE(job_request->record);
  EXPECT_EQ(job_request->notes.size(), 1u);
}

TEST(CalibrationTest, WhatIsMeasuredScalesThePredictionsOfAllPools) {
  auto job_request = BuildJobPlanRequest(Objects(), false, testing_objects::Now());
  ASSERT_THAT(job_request, base::IsOk());
  job_request->record->uncorrected_throughput = 20874.3 * 4;  // what the profiles promised is four times as much
  CalibrateByMeasurement(*job_request);
  EXPECT_NEAR(job_request->calibration, 0.25, 1e-9);
  for (const model::Layer& layer : job_request->request.model.layers) {
    for (const model::LayerProfile& profile : layer.profiles) EXPECT_NEAR(profile.compute_seconds, 0.04, 1e-9);
  }
  EXPECT_THAT(job_request->notes, Contains(HasSubstr("predictions of the new plan are multiplied by 0.25")));
}

TEST(CalibrationTest, NothingIsScaledWithoutAMeasurementOfThePlanInForce) {
  const auto calibrated = [](const std::function<void(JobPlanRequest&)>& change) {
    auto job_request = *BuildJobPlanRequest(Objects(), false, testing_objects::Now());
    job_request.record->uncorrected_throughput = 20874.3 * 4;
    change(job_request);
    CalibrateByMeasurement(job_request);
    return job_request.calibration != 1;
  };
  EXPECT_TRUE(calibrated([](JobPlanRequest&) {}));
  EXPECT_FALSE(calibrated([](JobPlanRequest& r) { r.record.reset(); }));
  EXPECT_FALSE(calibrated([](JobPlanRequest& r) { r.status.observed.reset(); }));
  EXPECT_FALSE(calibrated([](JobPlanRequest& r) { r.status.observed->throughput = 0; }));
  EXPECT_FALSE(calibrated([](JobPlanRequest& r) { r.record->plan.generation = 5; }));
  EXPECT_FALSE(calibrated([](JobPlanRequest& r) { r.status.conditions = ops::Conditions(); }));
  EXPECT_FALSE(calibrated([](JobPlanRequest& r) { r.record->uncorrected_throughput = 20874.3 * 11; }));
}

TEST(CalibrationTest, ThePredictionHasTheSpreadOfItsSlowestStage) {
  JobPlanRequest job_request = *BuildJobPlanRequest(Objects(), false, testing_objects::Now());
  for (model::Layer& layer : job_request.request.model.layers) {
    for (model::LayerProfile& profile : layer.profiles)
      profile.spread = profile.resource_type == "v100-spot" ? 0.1 : 0.5;
  }
  // Two layers of 10 ms each on one V100 against one layer on four CPUs.
  const model::ExecutionPlan& plan = job_request.record->plan;
  EXPECT_NEAR(ops::PredictionSpread(job_request.request.model, plan), std::sqrt(2.0) * 0.001 / 0.02, 1e-9);
  model::PlanResult result;
  result.plan = model::ProvisionedPlan{};
  result.execution_plan = plan;
  EXPECT_THAT(ComparisonLines(Compare(job_request, result), result), Contains(HasSubstr("20,110 +- 7 %")));
  EXPECT_EQ(ops::PredictionSpread(model::Model(), plan), 0);
}

TEST(ComparisonTest, SaysWhatIsDifferentAndWhatItIsWorth) {
  const auto job_request = BuildJobPlanRequest(Objects(), false, testing_objects::Now());
  ASSERT_THAT(job_request, base::IsOk());
  model::PlanResult result;
  result.plan = model::ProvisionedPlan{};
  result.plan->throughput = 20000;
  result.plan->cost_per_hour = 1.5;
  result.execution_plan = testing_objects::Record().plan;
  Comparison same = Compare(*job_request, result);
  EXPECT_TRUE(same.running);
  EXPECT_TRUE(same.same);
  EXPECT_NEAR(same.usd_per_hour, 6 * 0.04 + 2.42, 1e-9) << "at current prices";
  EXPECT_NEAR(same.stay_usd, 1727200 / 20874.3 / 3600 * 2.66, 1e-6);
  EXPECT_THAT(ComparisonLines(same, result), Contains("the new plan is the same"));
  result.execution_plan->stages[0].groups[0].units = 2;
  const Comparison other = Compare(*job_request, result);
  EXPECT_FALSE(other.same);
  EXPECT_THAT(ComparisonLines(other, result), Contains(HasSubstr("USD less (-")));
  Comparison slow = other;
  slow.measured_throughput = slow.throughput / 2;
  EXPECT_THAT(ComparisonLines(slow, result), Contains(HasSubstr("reaches 50 % of its predicted throughput")));
  model::PlanResult fastest = result;
  fastest.step_time = model::StepTimePlan{};
  fastest.plan->throughput = slow.measured_throughput * 1.5;
  EXPECT_THAT(ComparisonLines(slow, fastest), Contains("throughput of the new plan, compared with now: +50.0 %"));
  const Json json = Json::parse(ComparisonJson(*job_request, other, R"({"planner": "exact"})"));
  EXPECT_EQ(json["plan"]["planner"], "exact");
  EXPECT_EQ(json["running"]["generation"], 4);
  EXPECT_FALSE(json["running"]["same"].get<bool>());
}

}  // namespace
}  // namespace medley::cli
