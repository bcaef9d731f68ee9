#include "operator/records/plan_request.h"

#include "common/base/testing/status_matchers.h"

namespace medley::ops {
namespace {

using base::IsOk;
using base::StatusIs;
using kube::Json;

class PlanRequestTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto job = TrainingJob::FromObject(kube::Object(Json::parse(R"({"metadata": {"name": "j"}, "spec": {
      "model": {"name": "mlp"}, "data": {}, "training": {"epochs": 3, "microBatches": 8, "seed": 5},
      "objective": {"minThroughput": 100, "deadline": "1h", "budgetUsd": "5", "maxUsdPerHour": "2"},
      "elasticity": {"minUnits": 2, "maxUnits": 9}}})")));
    ASSERT_THAT(job, IsOk());
    job_ = *job;
    cpu_.name = "cpu";
    cpu_.usd_per_unit_hour = 0.04;
    expensive_ = cpu_;
    expensive_.name = "expensive";
    expensive_.usd_per_unit_hour = 0.4;
    gpu_.name = "gpu";
    gpu_.cls = model::ResourceClass::kGpu;
    gpu_.memory_bytes = 1e9;
    gpu_.offering = model::Offering{"aws", "r", "", "p3", "spot", 1};
    profile_ = Profile("cpu");
  }
  static model::Profile Profile(const std::string& pool, const char* layer = "fc") {
    model::Profile profile;
    profile.id = "p-" + pool;
    profile.profile_batch_size = 64;
    profile.samples_per_epoch = 1000;
    profile.state_factor = 4;
    model::Layer fc;
    fc.name = layer;
    model::LayerProfile numbers;
    numbers.resource_type = pool;
    numbers.compute_seconds = 0.2;
    fc.profiles.push_back(numbers);
    profile.model.layers.push_back(fc);
    return profile;
  }

  TrainingJob job_;
  ResourcePool cpu_, expensive_, gpu_;
  model::Profile profile_;
};

TEST_F(PlanRequestTest, HasEverythingThatTheJobRequests) {
  const auto r = BuildPlanRequest(job_, profile_, {{&gpu_, 2}, {&expensive_, 3}, {&cpu_, 4}}, {});
  EXPECT_EQ(r.training.profile_batch_size, 64);
  EXPECT_EQ(r.training.TotalSamples(), 3000);
  EXPECT_EQ(r.training.state_factor, 4);
  EXPECT_EQ(r.training.micro_batches, 8);
  EXPECT_EQ(r.constraints.min_throughput, 100);
  EXPECT_EQ(r.constraints.deadline_seconds, 3600);
  EXPECT_EQ(r.constraints.budget_usd, 5);
  EXPECT_EQ(r.constraints.max_cost_per_hour, 2);
  EXPECT_EQ(r.constraints.min_units, 2);
  EXPECT_EQ(r.constraints.max_units, 9);
  EXPECT_EQ(r.planner.name, "auto");
  EXPECT_EQ(r.planner.seed, 5u);
  ASSERT_EQ(r.resources.size(), 3u);
  EXPECT_EQ(r.resources[0].price_per_unit_hour, 0);  // the service takes the price from its catalog
  EXPECT_EQ(r.resources[0].limit, 2);
  EXPECT_EQ(r.server_type, "cpu");  // the cheapest CPU pool
}

TEST_F(PlanRequestTest, ACatalogPriceAndItsZoneAreSaid) {
  const auto r = BuildPlanRequest(job_, profile_, {{&gpu_, 2, "", 1.5, "b"}, {&cpu_, 4, "", 0.04, ""}}, {});
  EXPECT_EQ(r.resources[0].price_per_unit_hour, 1.5);
  EXPECT_EQ(r.resources[0].offering->zone, "b");
  EXPECT_EQ(r.resources[1].price_per_unit_hour, 0.04);
}

TEST_F(PlanRequestTest, GoalsAreWhatIsLeftOfThem) {
  const auto r = BuildPlanRequest(job_, profile_, {{&cpu_, 4}}, {500, 600, 1.5, 1});
  EXPECT_EQ(r.training.TotalSamples(), 500);
  EXPECT_EQ(r.constraints.deadline_seconds, 3000);
  EXPECT_EQ(r.constraints.budget_usd, 3.5);
  const auto late = BuildPlanRequest(job_, profile_, {{&cpu_, 4}}, {500, 7200, 9, 1});
  EXPECT_GT(late.constraints.deadline_seconds, 0);  // 0 would mean: no deadline
  EXPECT_GT(late.constraints.budget_usd, 0);
}

TEST_F(PlanRequestTest, CalibrationScalesTheProfile) {
  const auto r = BuildPlanRequest(job_, profile_, {{&cpu_, 4}}, {500, 0, 0, 0.5});
  EXPECT_DOUBLE_EQ(r.model.layers[0].profiles[0].compute_seconds, 0.4);
  EXPECT_EQ(r.model.layers[0].profiles[0].origin, "calibrated");
}

TEST_F(PlanRequestTest, ProfilesOfPoolsMergeByLayer) {
  model::Profile cpu = Profile("cpu"), gpu = Profile("gpu");
  const model::AllreduceMeasurement on_cpu{"cpu", 2, 4096, model::AllreduceAlgorithm::kRing, 1e-3};
  const model::AllreduceMeasurement on_gpu{"gpu", 4, 4096, model::AllreduceAlgorithm::kLinear, 2e-3};
  cpu.allreduces = {on_cpu};
  gpu.allreduces = {on_gpu};
  const auto merged = MergeProfiles({cpu, gpu});
  ASSERT_THAT(merged, IsOk());
  ASSERT_EQ(merged->model.layers[0].profiles.size(), 2u);
  EXPECT_EQ(merged->model.layers[0].profiles[1].resource_type, "gpu");
  EXPECT_EQ(merged->allreduces, (std::vector{on_cpu, on_gpu}));
  EXPECT_EQ(BuildPlanRequest(job_, *merged, {{&cpu_, 4}}, {}).allreduces, merged->allreduces);
  EXPECT_THAT(MergeProfiles({Profile("cpu"), Profile("gpu", "other")}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MergeProfiles({}), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace medley::ops
