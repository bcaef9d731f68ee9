#include "operator/records/plan_request.h"
#include "common/model/allreduce_algorithm.h"
#include "common/model/device.h"
#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/profile.h"

#include <map>

#include "common/base/testing/status_matchers.h"
#include "common/model/link_table.h"

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

// What the profiler found free, at most what the pool says; and only where rows could also move to shards.
TEST_F(PlanRequestTest, TheMemoryOfAGpuIsWhatATrainerMayUse) {
  job_.checkpoint_uri = "s3://bucket/jobs";
  const auto of_gpu = [&](double measured, double said) {
    profile_.units = {{.resource_type = "gpu", .device_memory_bytes = measured}};
    gpu_.memory_bytes = said;
    return BuildPlanRequest(job_, profile_, {{&gpu_, 2}, {&cpu_, 4}}, {}).resources[0].device_memory_bytes;
  };
  EXPECT_EQ(of_gpu(7e8, 1e9), 7e8);
  EXPECT_EQ(of_gpu(2e9, 1e9), 1e9);
  EXPECT_EQ(of_gpu(0, 1e9), 1e9) << "not measured yet";
  EXPECT_EQ(of_gpu(2e9, 0), 2e9);
  EXPECT_EQ(BuildPlanRequest(job_, profile_, {{&cpu_, 4}}, {}).resources[0].device_memory_bytes, 0);
  job_.checkpoint_uri = "";
  EXPECT_EQ(of_gpu(7e8, 1e9), 0) << "without checkpoints rows stay in one form";
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

// The simulator of the service gets what `medley simulate` reads from the profile, so both say the same of a plan.
TEST_F(PlanRequestTest, ThePlansOfCostsAreSimulatedAsTheProfileSays) {
  profile_.links = {{"cpu", "cpu", 1e-4, 1e8, 2e-5, 1e-9, 1e-5, 4e6}, {"cpu", "gpu", 2e-4, 5e7}};
  profile_.micro_batches = job_.micro_batches;
  const auto r = BuildPlanRequest(job_, profile_, {{&cpu_, 4}, {&gpu_, 2}}, {});
  EXPECT_EQ(r.objective, model::Objective::kCost);
  EXPECT_EQ(r.resources[0].processor_seconds_per_message, 2e-5);
  EXPECT_EQ(r.resources[0].processor_seconds_per_byte, 1e-9);
  EXPECT_EQ(r.resources[1].processor_seconds_per_message, 0);
  const model::Profile simulated = model::ProfileOf(r);
  EXPECT_EQ(simulated.links, profile_.links);
  EXPECT_EQ(simulated.model, profile_.model);
  EXPECT_EQ(simulated.profile_batch_size, profile_.profile_batch_size);
  EXPECT_EQ(simulated.micro_batches, profile_.micro_batches);
  EXPECT_EQ(simulated.state_factor, profile_.state_factor);
}

// As its profiler found it, or as the pool says; a unit with a GPU does not compute on its processors.
TEST_F(PlanRequestTest, TheCpuLimitOfAUnitIsPassedOn) {
  cpu_.unit_resources = {{"cpu", "400m"}};
  expensive_.unit_resources = {{"cpu", "4"}};
  gpu_.unit_resources = {{"cpu", "500m"}};
  profile_.units = {{"cpu", 0.35, 0.01}};
  const auto r = BuildPlanRequest(job_, profile_, {{&cpu_, 4}, {&expensive_, 2}, {&gpu_, 2}}, {});
  EXPECT_EQ(r.resources[0].cores, 0.35);
  EXPECT_EQ(r.resources[0].cpu_period_seconds, 0.01);
  EXPECT_EQ(r.resources[1].cores, 4);
  EXPECT_EQ(r.resources[1].cpu_period_seconds, 0);
  EXPECT_EQ(r.resources[2].cores, 0);
  EXPECT_EQ(model::ProfileOf(r).units, (std::vector<model::UnitCpus>{{"cpu", 0.35, 0.01}, {"expensive", 4, 0}}));
  model::Profile other = Profile("gpu");
  other.units = {{"gpu", 0, 0}};
  const auto merged = MergeProfiles({profile_, other});
  ASSERT_THAT(merged, IsOk());
  EXPECT_EQ(merged->units, (std::vector<model::UnitCpus>{{"cpu", 0.35, 0.01}, {"gpu", 0, 0}}));
}

TEST_F(PlanRequestTest, LinksAreCalibratedAsTheLayersAre) {
  profile_.links = {{"cpu", "cpu", 1e-4, 1e8, 2e-5, 1e-9}};
  JobProgress progress;
  progress.calibration = 0.5;  // it computes half as fast as was measured
  const auto r = BuildPlanRequest(job_, profile_, {{&cpu_, 4}}, progress);
  EXPECT_EQ(r.links, (std::vector<model::Link>{{"cpu", "cpu", 2e-4, 5e7, 4e-5, 2e-9}}));
  EXPECT_DOUBLE_EQ(r.resources[0].processor_seconds_per_message, 4e-5);
}

// Three pools of two speeds; the link between gpu and cpu was not measured.
class FastestTest : public PlanRequestTest {
 protected:
  void SetUp() override {
    PlanRequestTest::SetUp();
    job_.objective = {.fastest = true};
    job_.elasticity.max_units = 5;
    for (const auto& [pool, seconds] : {std::pair("gpu", 0.01), {"expensive", 0.2}}) {
      model::LayerProfile numbers = profile_.model.layers[0].profiles[0];
      numbers.resource_type = pool;
      numbers.compute_seconds = seconds;
      profile_.model.layers[0].profiles.push_back(numbers);
    }
    profile_.links = {{"gpu", "gpu", 1e-5, 1e10}, {"cpu", "cpu", 1e-4, 1e8}, {"cpu", "expensive", 2e-4, 5e7}};
  }
};

TEST_F(FastestTest, AsksForTheUnitsThatComputeFastest) {
  const auto r = BuildPlanRequest(job_, profile_,
                                  {{&cpu_, 4, "", 0, "zone-a"}, {&expensive_, 0}, {&gpu_, 2, "", 0, "zone-b"}}, {});
  EXPECT_EQ(r.objective, model::Objective::kStepTime);
  std::vector<std::string> ids;
  for (const model::Device& device : r.cluster.devices) ids.push_back(device.id + "@" + device.location);
  EXPECT_EQ(ids,
            (std::vector<std::string>{"gpu/0@zone-b", "gpu/1@zone-b", "cpu/0@zone-a", "cpu/1@zone-a", "cpu/2@zone-a"}));
  EXPECT_EQ(r.cluster.links, (std::vector<model::ClusterLink>{
                                 {"gpu", "gpu", 1e-5, 1e10}, {"gpu", "cpu", 1e-4, 1e8}, {"cpu", "cpu", 1e-4, 1e8}}));
  EXPECT_TRUE(model::LinkTable::Make(r.cluster).ok());
}

// Every bound goes with it; with one of money the fastest units may be too expensive, so all pools are offered.
TEST_F(FastestTest, BoundsAreThoseOfAnyGoal) {
  job_.objective = {100, 3600, 5, 2, true};
  const auto r =
      BuildPlanRequest(job_, profile_, {{&cpu_, 9}, {&expensive_, 2}, {&gpu_, 7, "", 1.5, ""}}, {500, 600, 1, 1});
  EXPECT_EQ(r.objective, model::Objective::kStepTime);
  EXPECT_EQ(r.constraints.min_throughput, 100);
  EXPECT_EQ(r.constraints.deadline_seconds, 3000);
  EXPECT_EQ(r.constraints.budget_usd, 4);
  EXPECT_EQ(r.constraints.max_cost_per_hour, 2);
  EXPECT_EQ(r.constraints.max_units, 5);
  EXPECT_EQ(r.resources[2].price_per_unit_hour, 1.5);
  std::map<std::string, int> units;
  for (const model::Device& device : r.cluster.devices) ++units[device.pool];
  EXPECT_EQ(units, (std::map<std::string, int>{{"cpu", 5}, {"expensive", 2}, {"gpu", 5}}));
  EXPECT_THAT(model::Validate(r), IsOk());
}

// Tables are on parameter servers, and slow trainers are left out of stages: both are plans of stages, of which the
// fastest is asked for.
TEST_F(FastestTest, SomeJobsNeedPlansOfStages) {
  TrainingJob watched = job_;
  watched.planner.sync.detector = model::AnomalyDetector::kWindow;
  const auto stages = BuildPlanRequest(watched, profile_, {{&cpu_, 4}}, {});
  EXPECT_EQ(stages.objective, model::Objective::kTime);
  EXPECT_FALSE(stages.on_devices());
  profile_.model.layers[0].profiles[0].server_seconds = 0.1;
  const auto tables = BuildPlanRequest(job_, profile_, {{&cpu_, 4}}, {});
  EXPECT_EQ(tables.objective, model::Objective::kTime);
  EXPECT_FALSE(tables.on_devices());
  EXPECT_THAT(model::Validate(tables), IsOk());
}

TEST_F(PlanRequestTest, TheLeastUsdPerHourIsAnObjective) {
  job_.objective.least_usd_per_hour = true;
  const auto r = BuildPlanRequest(job_, profile_, {{&cpu_, 4}}, {});
  EXPECT_EQ(r.objective, model::Objective::kCostPerHour);
  EXPECT_EQ(r.constraints.deadline_seconds, 3600);
  EXPECT_FALSE(r.on_devices());
}

TEST_F(PlanRequestTest, ThePlannerChoosesThePlaceOfRowsUnlessAPoolForServersIsNamed) {
  EXPECT_EQ(BuildPlanRequest(job_, profile_, {{&cpu_, 4}}, {}).rows, model::RowsPlace::kAny);
  job_.server_pool = "cpu";
  const auto named = BuildPlanRequest(job_, profile_, {{&cpu_, 4}, {&expensive_, 1}}, {});
  EXPECT_EQ(named.rows, model::RowsPlace::kServers);
  EXPECT_EQ(named.server_type, "cpu");
}

TEST_F(FastestTest, LinksNobodyHasMeasured) {
  profile_.links = {{"cpu", "expensive", 2e-4, 5e7}};
  job_.elasticity.max_units = 64;
  const auto r = BuildPlanRequest(job_, profile_, {{&cpu_, 2}, {&expensive_, 1}}, {});
  EXPECT_EQ(r.cluster.links,
            (std::vector<model::ClusterLink>{{"cpu", "cpu", 1e-4, 1.5e9}, {"cpu", "expensive", 2e-4, 5e7}}));
  EXPECT_TRUE(model::LinkTable::Make(r.cluster).ok());
}

TEST_F(FastestTest, SaysWhatMessagesCostAProcessor) {
  profile_.links[1].processor_seconds_per_message = 2e-5;
  profile_.links[1].processor_seconds_per_byte = 1e-9;
  profile_.links[1].processor_seconds_per_message_in_a_row = 1e-5;
  profile_.links[1].computed_bytes_per_message = 4e6;
  profile_.links[2].processor_seconds_per_byte = 7;  // between two pools: of neither
  JobProgress progress;
  progress.calibration = 0.5;
  const auto r = BuildPlanRequest(job_, profile_, {{&cpu_, 4}, {&expensive_, 1}}, progress);
  EXPECT_DOUBLE_EQ(r.resources[0].processor_seconds_per_message, 4e-5) << "it computes half as fast as was measured";
  EXPECT_DOUBLE_EQ(r.resources[0].processor_seconds_per_byte, 2e-9);
  EXPECT_DOUBLE_EQ(r.resources[0].processor_seconds_per_message_in_a_row, 2e-5);
  EXPECT_EQ(r.resources[0].computed_bytes_per_message, 4e6) << "of no time";
  EXPECT_EQ(r.resources[1].processor_seconds_per_byte, 0);
  const auto links = model::ProfileOf(r).links;
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].from, "cpu");
  EXPECT_EQ(links[0].to, "cpu");
  EXPECT_DOUBLE_EQ(links[0].processor_seconds_per_message, 4e-5);
}

TEST_F(FastestTest, AnAnswerGetsThePriceOfItsTrainers) {
  const auto request = BuildPlanRequest(job_, profile_, {{&cpu_, 4}, {&gpu_, 2, "", 1.5, ""}}, {});
  model::PlanResult answer;
  EXPECT_FALSE(WithPrice(answer, request).plan) << "no plan stays no plan";
  answer.resources = request.resources;
  answer.step_time = model::StepTimePlan{.seconds = 0.1, .throughput = 600};
  answer.step_time->alternatives = {{"one device: gpu/0", 0.2, ""}, {"all devices", 0, "memory"}};
  model::ExecutionPlan& plan = answer.execution_plan.emplace();
  plan.devices = {request.cluster.devices[0], request.cluster.devices[2]};
  plan.placements.push_back({{{0, 1}}, {{"gpu/0", 0.9}, {"cpu/0", 0.1}}, {}});
  const model::PlanResult priced = WithPrice(answer, request);
  ASSERT_TRUE(priced.plan);
  EXPECT_EQ(priced.plan->throughput, 600);
  EXPECT_DOUBLE_EQ(priced.plan->cost_per_hour, 1.54);
  EXPECT_DOUBLE_EQ(priced.plan->execution_seconds, 5);
  EXPECT_DOUBLE_EQ(priced.execution_plan->estimate.usd_total, 1.54 * 5 / 3600);
  ASSERT_EQ(priced.alternatives.size(), 2U);
  EXPECT_EQ(priced.alternatives[0].plan->throughput, 300);
  EXPECT_EQ(priced.alternatives[1].reasons[0].message, "memory");
}

}  // namespace
}  // namespace medley::ops
