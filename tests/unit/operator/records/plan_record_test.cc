#include "operator/records/plan_record.h"

#include "common/base/testing/status_matchers.h"
#include "operator/builders/slots.h"

namespace medley::ops {
namespace {

using base::IsOk;
using base::StatusIs;
using kube::Json;

PlanRecord Record() {
  PlanRecord record;
  record.plan.job_uid = "u";
  record.plan.generation = 4;
  record.plan.stages = {{{{0, 1}}, {{"cpu", 2, 1}}, {}, 0}};
  record.plan.servers = model::Servers{"cpu", 1};
  record.slots = AssignSlots("j", record.plan, {}, {}, {{"cpu", "zone-a"}});
  record.usd_per_unit_hour = {{"cpu", 0.04}, {"gpu", 2}};
  record.layer_names = {"emb"};
  record.stage_throughput = {123};
  record.uncorrected_throughput = 246;
  record.throughput_spread = 0.03;
  record.alternatives = {{"cpu only", 1, 2, 3, ""}};
  record.reason = Reason::kPriceChanged;
  record.accepted_at = "2026-11-21T07:15:00Z";
  record.policy = "00112233aabbccdd";
  record.coordinator_uid = "c";
  record.coordinator_restarts = 1;
  return record;
}

TEST(PlanRecordTest, SurvivesItsConfigMap) {
  const auto job = TrainingJob::FromObject(kube::Object(Json::parse(
      R"({"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "j", "namespace": "n", "uid": "u"},
          "spec": {"model": {"name": "mlp"}, "data": {}}})")));
  ASSERT_THAT(job, IsOk());
  const auto read = ReadPlanRecord(PlanConfigMap(*job, Record()));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(PlanConfigMap(*job, *read).json(), PlanConfigMap(*job, Record()).json());
  EXPECT_EQ(read->slots, Record().slots);
  EXPECT_EQ(read->uncorrected_throughput, 246);
  EXPECT_EQ(read->throughput_spread, 0.03);
  EXPECT_EQ(read->usd_per_unit_hour, Record().usd_per_unit_hour);
  EXPECT_TRUE(SameShape(read->plan, Record().plan));
  EXPECT_EQ(read->Zones(), (std::map<std::string, std::string>{{"cpu", "zone-a"}}));
}

TEST(PlanRecordTest, DevicesOfPlacementsSurviveToo) {
  const auto job = TrainingJob::FromObject(kube::Object(Json::parse(
      R"({"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "j", "namespace": "n", "uid": "u"},
          "spec": {"model": {"name": "mlp"}, "data": {}}})")));
  ASSERT_THAT(job, IsOk());
  PlanRecord record = Record();
  record.plan.stages.clear();
  record.plan.devices = {{"a", "cpu", "", ""}, {"b", "gpu", "", ""}};
  record.plan.placements = {{{{0, 1}}, {{"b", 0.75}, {"a", 0.25}}, {}}};
  record.slots = AssignSlots("j", record.plan);
  const auto read = ReadPlanRecord(PlanConfigMap(*job, record));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->slots, record.slots);
  EXPECT_TRUE(SameShape(read->plan, record.plan));
  record.plan.placements.front().replicas = {{"a", 1}};
  EXPECT_FALSE(SameShape(read->plan, record.plan));
}

TEST(PlanRecordTest, CurrentPricesReplaceThoseOfThePlan) {
  EXPECT_DOUBLE_EQ(Record().UsdPerHour({}), 3 * 0.04);
  EXPECT_DOUBLE_EQ(Record().UsdPerHour({{"cpu", 1}}), 3);
  EXPECT_EQ(Record().Trainers(), 2);
}

TEST(PlanRecordTest, TheErrorOfAMalformedRecordNamesTheConfigMap) {
  kube::Object map(kube::resources::ConfigMaps(), {"n", "j-plan"});
  map.mutable_json()["data"] = {{"plan.json", "{"}, {"record.json", "{}"}};
  EXPECT_THAT(ReadPlanRecord(map), StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("n/j-plan")));
  map.mutable_json()["data"] = {{"plan.json", "{}"}, {"record.json", "[]"}};
  EXPECT_THAT(ReadPlanRecord(map), StatusIs(absl::StatusCode::kInvalidArgument));
  map.mutable_json()["data"] = {{"plan.json", "{}"}, {"record.json", R"({"reason": 1})"}};
  EXPECT_THAT(ReadPlanRecord(map), StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("n/j-plan")));
}

}  // namespace
}  // namespace medley::ops
