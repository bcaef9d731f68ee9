#include "operator/lifecycle/job_observation.h"
#include "common/model/model.h"
#include "common/model/observation.h"
#include "common/model/planning.h"
#include "common/model/profile.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"

namespace medley::ops {
namespace {

using base::IsOk;
using kube::Json;

class JobObservationTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto job = TrainingJob::FromObject(kube::Object(Json::parse(R"({"metadata": {"name": "j", "uid": "u-1"},
      "spec": {"model": {"name": "mlp"}, "data": {}, "training": {"epochs": 3, "batchSize": 2048}}})")));
    ASSERT_THAT(job, IsOk());
    job_ = *job;
    record_.plan.generation = 2;
    record_.plan.stages = {{.operations = {{0, 1}}, .groups = {{"cpu", 3, 1}}},
                           {.operations = {{1, 3}}, .groups = {{"gpu", 2, 1}}}};
    record_.plan.servers = model::Servers{"cpu", 1};
    record_.usd_per_unit_hour = {{"cpu", 0.1}, {"gpu", 1}};
    for (const char* pool : {"cpu", "cpu", "cpu", "gpu", "gpu", "cpu"}) {
      MemberSlot slot;
      slot.pool = pool;
      record_.slots.push_back(slot);
    }
    seen_.phase = JobPhase::kTraining;
    seen_.generation = 3;  // a recovery runs the plan of generation 2 as generation 3
    seen_.plan_generation = 2;
    seen_.throughput = 50000;
    seen_.stages = {{3, 0.010, 0.020}, {2, 0.030, 0.002}};
    profiles_ = {Profile("cpu"), Profile("gpu")};
  }
  static model::Profile Profile(const std::string& pool) {
    model::Profile profile;
    profile.id = "hash";
    profile.profile_batch_size = 2048;
    profile.samples_per_epoch = 1000;
    for (const char* name : {"a", "b", "c"}) {
      model::Layer layer;
      layer.name = name;
      layer.profiles = {{.resource_type = pool, .compute_seconds = 0.02, .compute_parallel = 1, .origin = "measured"}};
      profile.model.layers.push_back(layer);
    }
    return profile;
  }

  Alternatives Now() const {
    return {
        profiles_, {{&cpu_, 8, "", 0, ""}, {&gpu_, 4, "", 0.9, ""}}, {.remaining_samples = 500, .calibration = 0.5}};
  }
  static ResourcePool Pool(const char* name, model::ResourceClass cls, double price) {
    ResourcePool pool;
    pool.name = name;
    pool.cls = cls;
    pool.usd_per_unit_hour = price;
    return pool;
  }

  const ResourcePool cpu_ = Pool("cpu", model::ResourceClass::kCpu, 0.1);
  const ResourcePool gpu_ = Pool("gpu", model::ResourceClass::kGpu, 1);
  TrainingJob job_;
  PlanRecord record_;
  Observation seen_;
  std::vector<model::Profile> profiles_;
};

TEST_F(JobObservationTest, HasTheMeasurements) {
  const auto o = BuildJobObservation(job_, record_, seen_, Now());
  ASSERT_TRUE(o);
  EXPECT_THAT(model::Validate(*o), IsOk());
  EXPECT_EQ(o->job_uid, "u-1");
  EXPECT_EQ(o->generation, 3);
  EXPECT_EQ(o->throughput, 50000);
  EXPECT_EQ(o->batch_size, 2048);
  EXPECT_EQ(o->server_units, 1);
  EXPECT_DOUBLE_EQ(o->usd_per_hour, 4 * 0.1 + 2 * 1);
  ASSERT_EQ(o->stages.size(), 2u);
  // Stage 0 waits for stage 1, and stage 1 communicates while it computes: neither time is reported.
  EXPECT_EQ(o->stages[0], (model::StageMeasurement{0, 0, "cpu", 3, 0.010, 0}));
  EXPECT_EQ(o->stages[1], (model::StageMeasurement{1, 2, "gpu", 2, 0.030, 0}));
  EXPECT_EQ(o->request.training.profile_batch_size, 2048);
  EXPECT_EQ(o->request.model.layers[2].profiles.size(), 2u);
}

// What a policy is trained on: the question that the job would be planned with now.
TEST_F(JobObservationTest, HasThePricesLimitsAndGoalsThatTheJobIsPlannedWith) {
  job_.objective.min_throughput = 4000;
  const auto o = BuildJobObservation(job_, record_, seen_, Now());
  ASSERT_TRUE(o);
  ASSERT_EQ(o->request.resources.size(), 2U);
  EXPECT_EQ(o->request.resources[0].price_per_unit_hour, 0.1);
  EXPECT_EQ(o->request.resources[0].limit, 8);
  EXPECT_EQ(o->request.resources[1].price_per_unit_hour, 0.9) << "of the catalog";
  EXPECT_EQ(o->request.resources[1].cls, model::ResourceClass::kGpu);
  EXPECT_EQ(o->request.constraints.min_throughput, 4000);
  EXPECT_EQ(o->request.training.remaining_samples, 500);
  for (const model::Layer& layer : o->request.model.layers) {
    for (const model::LayerProfile& p : layer.profiles) {
      EXPECT_EQ(p.origin, "measured") << "no correction may be corrected again";
      EXPECT_EQ(p.compute_seconds, 0.02);
    }
  }
  EXPECT_THAT(model::Validate(o->request), IsOk());
}

TEST_F(JobObservationTest, APoolThatIsNotOfferedAnyMoreHasThePriceOfThePlan) {
  Alternatives now = Now();
  now.offers.erase(now.offers.begin() + 1);
  const auto o = BuildJobObservation(job_, record_, seen_, now);
  ASSERT_TRUE(o);
  ASSERT_EQ(o->request.resources.size(), 2U);
  EXPECT_EQ(o->request.resources[1].name, "gpu");
  EXPECT_EQ(o->request.resources[1].price_per_unit_hour, 1);
  EXPECT_EQ(o->request.resources[1].limit, 2);
  now.offers.clear();
  EXPECT_FALSE(BuildJobObservation(job_, record_, seen_, now));
}

// Jobs that ask for the fastest plan are planned on devices; what they measure is of stages.
TEST_F(JobObservationTest, HasNoDevices) {
  job_.objective.fastest = true;
  const auto o = BuildJobObservation(job_, record_, seen_, Now());
  ASSERT_TRUE(o);
  EXPECT_EQ(o->request.objective, model::Objective::kTime);
  EXPECT_TRUE(o->request.cluster.devices.empty());
  EXPECT_EQ(o->request.resources.size(), 2U);
}

TEST_F(JobObservationTest, HasTheSlowestStagesCommunicationWhenItExceedsComputation) {
  seen_.stages[1].comm_seconds = 0.045;
  const auto o = BuildJobObservation(job_, record_, seen_, Now());
  ASSERT_TRUE(o);
  EXPECT_EQ(o->stages[0].comm_seconds, 0);
  EXPECT_EQ(o->stages[1].comm_seconds, 0.045);
}

// A unit with 0.4 cores grants 4 ms of processor time in 10 ms, whatever the clock of its computation said of messages
// and of waiting for the next period. A unit with whole cores computes with several threads beside them.
TEST_F(JobObservationTest, WhereAUnitIsAPartOfACoreItsProcessorTimeCounts) {
  seen_.stages[0].processor_seconds = 0.008;
  seen_.stages[1].processor_seconds = 0.090;
  profiles_[0].units = {{"cpu", 0.4, 0.1}};
  profiles_[1].units = {{"gpu", 4, 0.1}};
  const auto o = BuildJobObservation(job_, record_, seen_, Now());
  ASSERT_TRUE(o);
  EXPECT_DOUBLE_EQ(o->stages[0].compute_seconds, 0.020);
  EXPECT_DOUBLE_EQ(o->stages[1].compute_seconds, 0.030);
  seen_.stages[0].processor_seconds = 0;  // not measured yet
  EXPECT_DOUBLE_EQ(BuildJobObservation(job_, record_, seen_, Now())->stages[0].compute_seconds, 0.010);
}

TEST_F(JobObservationTest, NothingDuringASwitchOrWithMissingMeasurements) {
  const auto refused = [this](auto change) {
    const Observation before = seen_;
    change();
    EXPECT_FALSE(IsComparable(record_, seen_));
    EXPECT_FALSE(BuildJobObservation(job_, record_, seen_, Now()));
    seen_ = before;
  };
  refused([this] { seen_.phase = JobPhase::kPreparing; });
  refused([this] { seen_.next_generation = 4; });
  refused([this] { seen_.plan_generation = 1; });
  refused([this] { seen_.missing_members = {"j-0"}; });
  refused([this] { seen_.throughput = 0; });
  refused([this] { seen_.stages[0].compute_seconds = 0; });
  refused([this] { seen_.stages[0].units = 2; });  // the stage runs with fewer members
  refused([this] { seen_.stages.pop_back(); });
  EXPECT_TRUE(IsComparable(record_, seen_));
}

TEST_F(JobObservationTest, NothingForStagesWithSeveralPoolsOrOtherProfiles) {
  EXPECT_EQ(TrainerPools(record_), (std::vector<std::string>{"cpu", "gpu"}));
  EXPECT_FALSE(BuildJobObservation(job_, record_, seen_, {}));
  EXPECT_FALSE(BuildJobObservation(job_, record_, seen_, {{Profile("cpu")}, Now().offers, {}}));
  record_.plan.stages[0].groups = {{"cpu", 2, 0.5}, {"gpu", 1, 0.5}};
  EXPECT_FALSE(BuildJobObservation(job_, record_, seen_, Now()));
}

}  // namespace
}  // namespace medley::ops
