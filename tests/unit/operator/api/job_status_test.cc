#include "operator/api/job_status.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/api/manifest_cases.h"

namespace medley::ops {
namespace {

JobStatus Full() {
  JobStatus status;
  status.observed_generation = 3;
  status.conditions.Set(kRunningCondition, ConditionStatus::kTrue, Reason::kGenerationCommitted,
                        "generation 4 is in force", 3, base::WallTime(base::seconds(1'700'000'000)));
  status.plan = PlanStatus{4,
                           "exact",
                           "emb@4xcpu | fc@1xgpu",
                           {{"0-0", "cpu", 4, 21000}, {"1-5", "gpu", 1, 20110}},
                           2,
                           "cpu",
                           4,
                           2.58,
                           20110,
                           2.5,
                           {{"cpu only", 20100, 3, 3.5, ""}, {"gpu only", 0, 0, 0, "too few"}},
                           17,
                           "2026-11-21T07:15:00Z",
                           0.03};
  status.observed = ObservedStatus{20874, 1203200, 2934672, 2350, "2/5", 41, 83, 0.331, 0, 2000, {{"auc", 0.902}}, {}};
  status.observed->evaluations = {{64, 1, 0.4, {{"auc", 0.89}}, "2026-01-01T00:00:00Z"},
                                  {128, 2, std::nullopt, {}, ""}};
  status.observed->best = BestStatus{64, 1, "auc", 0.89, "Validation"};
  status.observed->exported = ExportedStatus{"Best", 64, 1};
  status.observed->embeddings = EmbeddingStatus{4096, 12288, 0.81};
  status.observed->tables = TablesStatus{"Cache", 0.8, "The plan has more."};
  status.observed->course = {{10, 0.6, 20000}, {20, 0.5, 20100.5}};
  status.cost = CostStatus{0.83, "2026-11-21T07:15:00.000000Z", 0.034, 0.41};
  status.goodput.emplace();
  goodput::PoolBill& pool = status.goodput->bill.pools["cpu"];
  pool.seconds[goodput::Category::kTraining] = 90.5;
  pool.seconds[goodput::Category::kStartUp] = 9.5;
  pool.usd[goodput::Category::kTraining] = 0.75;
  pool.usd[goodput::Category::kStartUp] = 0.05;
  pool.counted[goodput::Category::kTraining] = 90.5;
  status.goodput->bill.pools[goodput::kCoordinatorPool].usd[goodput::Category::kIdle] = 0.03;
  status.goodput->bill.account = "1700000000.000000";
  status.goodput->bill.samples = 1203200;
  status.goodput->promised = PromiseStatus{2.6, 2.58, 20110};
  status.replicas = 7;
  status.selector = "medley.dev/job-name=adult";
  status.restarts = 1;
  status.last_rescale = RescaleStatus{3, 4, "PriceChanged", 0.4, "2026-11-21T07:15:00Z", true, 2};
  status.rescales = {*status.last_rescale};
  status.start_time = "2026-11-21T07:00:00Z";
  return status;
}

TEST(JobStatusTest, SurvivesJson) {
  EXPECT_EQ(JobStatus::FromJson(Full().ToJson()).ToJson(), Full().ToJson());
  EXPECT_EQ(JobStatus::FromJson(Full().ToJson()).observed->best, Full().observed->best);
  EXPECT_EQ(JobStatus::FromJson(Full().ToJson()).observed->exported, Full().observed->exported);
  EXPECT_EQ(JobStatus::FromJson(Full().ToJson()).observed->embeddings, Full().observed->embeddings);
  EXPECT_EQ(JobStatus::FromJson(Full().ToJson()).observed->tables, Full().observed->tables);
  EXPECT_EQ(JobStatus::FromJson(Full().ToJson()).goodput, Full().goodput);
  EXPECT_EQ(Full().ToJson()["goodput"]["share"], 0.9036);
  EXPECT_EQ(JobStatus::FromJson(kube::Json()), JobStatus());
}

// An API server removes fields that its schema does not have.
void ExpectKnown(const kube::Json& value, const kube::Json& schema, const std::string& path) {
  if (value.is_array()) {
    for (const kube::Json& item : value) ExpectKnown(item, schema.at("items"), path + "[]");
  }
  if (!value.is_object() || schema.contains("additionalProperties")) return;
  for (const auto& [name, field] : value.items()) {
    ASSERT_TRUE(schema.contains("properties") && schema["properties"].contains(name)) << path << "." << name;
    ExpectKnown(field, schema["properties"][name], path + "." + name);
  }
}

TEST(JobStatusTest, TheSchemaHasEveryField) {
  const kube::Json crd = LoadYaml("deploy/crds/trainingjobs.yaml");
  const kube::Json& schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
  ExpectKnown(Full().ToJson(), schema["properties"]["status"], "status");
}

TEST(JobStatusTest, MoneyIsAQuantityString) {
  const kube::Json json = Full().ToJson();
  EXPECT_EQ(json["plan"]["usdPerHour"], "2.58");
  EXPECT_EQ(json["cost"]["spentUsd"], "0.83");
  EXPECT_EQ(json["phase"], "Running");
}

TEST(JobStatusTest, WhatPeopleReadFollowsTheConditions) {
  JobStatus status = Full();
  kube::Json json = status.ToJson();
  EXPECT_EQ(json["observed"]["epoch"], "2/5");
  EXPECT_EQ(json["observed"]["progress"], "41%");
  EXPECT_EQ(json["observed"]["eta"], "1m23s");
  EXPECT_EQ(json["cost"]["usdPerHour"], "2.58");
  EXPECT_FALSE(json.contains("reason"));
  status.observed->estimated_remaining_seconds = 7512;
  EXPECT_EQ(status.ToJson()["observed"]["eta"], "2h05m");
  status.conditions.Set(kCompleteCondition, ConditionStatus::kTrue, Reason::kTrainingComplete, "", 1, base::WallTime());
  json = status.ToJson();
  EXPECT_EQ(json["reason"], "TrainingComplete");
  EXPECT_FALSE(json["observed"].contains("eta"));
  EXPECT_FALSE(json["cost"].contains("usdPerHour")) << "nothing is paid any more";
}

TEST(JobStatusTest, NumbersHaveFewDecimals) {
  JobStatus status;
  for (int tenths : {36596, 48180, 3, 999999}) {
    status.observed.emplace();
    status.observed->throughput = tenths / 10.0 + 0.004;
    status.observed->loss = 0.1234567;
    const kube::Json json = status.ToJson();
    EXPECT_EQ(json["observed"]["throughput"].dump(), kube::Json(tenths / 10.0).dump());
    EXPECT_EQ(json["observed"]["loss"].dump(), "0.123457");
  }
}

TEST(JobStatusTest, PhaseIsTheStrongestCondition) {
  JobStatus status;
  const auto set = [&](const char* type, ConditionStatus value, Reason reason) {
    status.conditions.Set(type, value, reason, "", 1, base::WallTime());
  };
  EXPECT_EQ(status.Phase(), "Pending");
  set(kPlannedCondition, ConditionStatus::kUnknown, Reason::kProfiling);
  EXPECT_EQ(status.Phase(), "Profiling");
  EXPECT_EQ(status.Reason(), "Profiling");
  set(kPlannedCondition, ConditionStatus::kTrue, Reason::kPlanFound);
  EXPECT_EQ(status.Phase(), "Starting");
  EXPECT_EQ(status.Reason(), "");
  set(kRunningCondition, ConditionStatus::kTrue, Reason::kGenerationCommitted);
  EXPECT_EQ(status.Phase(), "Running");
  EXPECT_EQ(status.Reason(), "");
  set(kRescalingCondition, ConditionStatus::kTrue, Reason::kPriceChanged);
  EXPECT_EQ(status.Phase(), "Rescaling");
  EXPECT_EQ(status.Reason(), "PriceChanged");
  set(kFailedCondition, ConditionStatus::kTrue, Reason::kBackoffLimitExceeded);
  EXPECT_EQ(status.Phase(), "Failed");
}

}  // namespace
}  // namespace medley::ops
