// Each row of api.md's table of bad input.
#include <gmock/gmock.h>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "operator/api/pool_status.h"
#include "operator/api/resources.h"
#include "tests/integration/operator/harness.h"
#include "tests/unit/operator/api/manifest_cases.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::HasSubstr;

class BadInputTest : public OperatorHarness {
 protected:
  void SetUp() override {
    OperatorHarness::SetUp();
    StartOperator();
  }
  std::string PlannedMessage() { return Status().conditions.Find("Planned")->message; }
};

INSTANTIATE_TEST_SUITE_P(On, BadInputTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);

TEST_P(BadInputTest, ASchemaErrorIsRefusedByTheServer) {
  Json job = JobJson();
  job["spec"]["model"]["name"] = "gpt";
  EXPECT_THAT(client_->Create(TrainingJobs(), kube::Object(job)),
              base::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("spec.model.name")));
}

TEST_P(BadInputTest, AContradictionIsRefusedWithTheRulesSentence) {
  Json job = JobJson();
  job["spec"]["elasticity"] = {{"minUnits", 5}, {"maxUnits", 2}};
  const std::string sentence = "spec.elasticity.minUnits must not exceed spec.elasticity.maxUnits";
  const auto made = client_->Create(TrainingJobs(), kube::Object(job));
  EXPECT_THAT(made, base::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(sentence)));
  if (server_.real()) return;  // its definitions are those of other tests too
  // Past a definition that has no rules, the operator says the same.
  Json crd = LoadYaml("deploy/crds/trainingjobs.yaml");
  crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["elasticity"].erase(
      "x-kubernetes-validations");
  server_.InstallCrd(crd.dump());
  ASSERT_THAT(client_->Create(TrainingJobs(), kube::Object(job)), base::IsOk());
  ASSERT_TRUE(WaitForCondition("Planned", "False", "InvalidSpec"));
  EXPECT_EQ(PlannedMessage(), sentence);
  PatchSpec("adult", {{"elasticity", {{"maxUnits", 8}}}});
  EXPECT_TRUE(WaitForCondition("Running", "True"));
}

TEST_P(BadInputTest, AnImmutableFieldThatChangesIsRefusedAndTheJobRunsOn) {
  RunJob();
  EXPECT_THAT(client_->Patch(TrainingJobs(), {ns_, "adult"}, kube::PatchType::kMerge,
                             {{"spec", {{"model", {{"name", "mlp"}}}}}}),
              base::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("spec.model is immutable")));
  EXPECT_TRUE(Status().conditions.IsTrue("Running"));
}

TEST_P(BadInputTest, AnUnknownPoolIsLeftOutAndTakenWhenItComes) {
  Json job = JobJson();
  job["spec"]["resources"]["pools"] = {"cpu", "late"};
  Apply(TrainingJobs(), job);
  ASSERT_TRUE(WaitForCondition("PoolsUsable", "False", "PoolNotFound"));
  EXPECT_THAT(Status().conditions.Find("PoolsUsable")->message, HasSubstr("spec.resources.pools[1]"));
  EXPECT_TRUE(WaitForCondition("Planned", "True"));
  Apply(ResourcePools(), Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool",
    "metadata": {"name": "late"}, "spec": {"class": "CPU", "limit": 4, "unit": {"resources": {"cpu": "1"}},
    "price": {"usdPerUnitHour": "1"}}})"));
  EXPECT_TRUE(WaitForCondition("PoolsUsable", "True"));
}

TEST_P(BadInputTest, AJobWhosePoolsAreAllUnknownSaysWhichAndIsRetried) {
  Json job = JobJson();
  job["spec"]["resources"]["pools"] = {"late"};
  Apply(TrainingJobs(), job);
  ASSERT_TRUE(WaitForCondition("Planned", "False", "PoolNotFound"));
  EXPECT_THAT(PlannedMessage(), HasSubstr("spec.resources.pools[0]"));
  EXPECT_THAT(PlannedMessage(), HasSubstr("'late'"));
  Apply(ResourcePools(), Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool",
    "metadata": {"name": "late"}, "spec": {"class": "CPU", "limit": 4, "unit": {"resources": {"cpu": "1"}},
    "price": {"usdPerUnitHour": "1"}}})"));
  EXPECT_TRUE(Eventually([&] { return scheduler_.plans() > 0; }, "asked for a plan on it"));
}

TEST_P(BadInputTest, APoolWithoutPriceIsNamedAndRetriedWhenPricesCome) {
  scheduler_.Publish(0);
  ASSERT_TRUE(Eventually(
      [&] {
        return Get(ResourcePools(), {"", "gpu"}).At("/status/conditions").dump().find("NotInCatalog") !=
               std::string::npos;
      },
      "the pool says so"));
  Json job = JobJson();
  job["spec"]["resources"]["pools"] = {"gpu"};
  Apply(TrainingJobs(), job);
  ASSERT_TRUE(WaitForCondition("Planned", "False", "PoolUnpriced"));
  EXPECT_THAT(PlannedMessage(), HasSubstr("'gpu'"));
  scheduler_.Publish(0.5);
  EXPECT_TRUE(Eventually([&] { return scheduler_.plans() > 0; }, "asked for a plan on it"));
}

TEST_P(BadInputTest, AnUnavailableOfferingKeepsItsPriceAndGivesNoFurtherUnits) {
  RunJob();
  const auto pool = [&] { return PoolStatus::FromJson(Get(ResourcePools(), {"", "gpu"}).At("/status")); };
  const auto units_offered = [&](const std::string& name) {
    for (const model::Resource& resource : scheduler_.last().resources) {
      if (resource.name == name) return resource.limit;
    }
    return -1;
  };
  ASSERT_TRUE(Eventually([&] { return pool().usd_per_unit_hour > 0; }, "the pool has a price"));
  const double price = pool().usd_per_unit_hour;
  scheduler_.PublishUnavailable(price);
  ASSERT_TRUE(Eventually([&] { return !pool().unavailable_since.empty(); }, "the pool's status says since when"));
  const PoolStatus unavailable = pool();
  const Condition* available = unavailable.conditions.Find(kAvailableCondition);
  ASSERT_NE(available, nullptr);
  EXPECT_EQ(available->status, ConditionStatus::kFalse);
  EXPECT_EQ(available->reason, "OfferingUnavailable");
  EXPECT_THAT(available->message, HasSubstr(unavailable.unavailable_since));
  EXPECT_EQ(pool().usd_per_unit_hour, price);
  EXPECT_TRUE(pool().conditions.IsTrue(kPricedCondition));
  EXPECT_EQ(pool().units.free, 0);
  EXPECT_TRUE(Status().conditions.IsTrue("Running"));
  // A second job is offered none of its units, and its condition says why.
  scheduler_.SetPlanner([](const model::PlanRequest&) -> absl::StatusOr<model::PlanResult> {
    model::PlanResult result;
    result.reasons = {{"minThroughput", "", 9, 1, "no plan reaches it"}};
    return result;
  });
  Json second = JobJson();
  second["metadata"]["name"] = "second";
  Apply(TrainingJobs(), second);
  const auto planned = [&] {
    const auto status = JobStatus::FromJson(Get(TrainingJobs(), {ns_, "second"}).At("/status"));
    const Condition* found = status.conditions.Find("Planned");
    return found != nullptr && found->reason == "Infeasible" ? found->message : "";
  };
  ASSERT_TRUE(Eventually([&] { return !planned().empty(); }, "the second job is planned in vain"));
  EXPECT_EQ(planned(),
            "no plan reaches it; pool gpu: no offering of the pool is available since " + pool().unavailable_since);
  EXPECT_EQ(units_offered("gpu"), 0);
  scheduler_.SetPlanner(nullptr);
  scheduler_.Publish(price);
  EXPECT_TRUE(Eventually([&] { return pool().conditions.IsTrue(kAvailableCondition); }, "the pool is available"));
  EXPECT_EQ(pool().unavailable_since, "");
}

TEST_P(BadInputTest, AnAutoscaledPoolWithoutNodesIsUnavailableToEveryJobForAWhile) {
  const auto pool = [&] { return PoolStatus::FromJson(Get(ResourcePools(), {"", "gpu"}).At("/status")); };
  const auto patch = [&](const Json& spec) {
    ASSERT_THAT(client_->Patch(ResourcePools(), {"", "gpu"}, kube::PatchType::kMerge, {{"spec", spec}}), base::IsOk());
  };
  pools_without_nodes_ = {"gpu"};
  patch({{"scaling", "Autoscaled"}, {"provisionTimeout", "2m"}, {"nodeSelector", {{"example.com/brought", "never"}}}});
  coordinator_.SetAutoCommit(false);
  Apply(TrainingJobs(), JobJson());
  ASSERT_TRUE(Eventually([&] { return PodNames().contains("adult-1-gpu-0"); }, "the plan's pods"));
  // In small steps: the time counts from when the operator sees that the pod finds no node.
  ASSERT_TRUE(Eventually(
      [&] {
        clock_.Advance(base::seconds(1));
        return !pool().outages.empty();
      },
      "the pool's status has the outage"));
  const PoolStatus unavailable = pool();
  EXPECT_EQ(unavailable.outages.front().failures, 1);
  EXPECT_EQ(unavailable.units.free, 0);
  const Condition* available = unavailable.conditions.Find(kAvailableCondition);
  ASSERT_NE(available, nullptr);
  EXPECT_EQ(available->reason, "ProvisioningFailed");
  EXPECT_THAT(available->message,
              HasSubstr("unavailable until " + base::FormatTime(unavailable.outages.front().until)));
  // Another job hears of it at once, and so does one of the next operator.
  scheduler_.SetPlanner([](const model::PlanRequest&) -> absl::StatusOr<model::PlanResult> {
    model::PlanResult result;
    result.reasons = {{"minThroughput", "", 9, 1, "no plan reaches it"}};
    return result;
  });
  const auto planned = [&](const std::string& name) {
    const auto status = JobStatus::FromJson(Get(TrainingJobs(), {ns_, name}).At("/status"));
    const Condition* found = status.conditions.Find("Planned");
    return found == nullptr ? "" : found->message;
  };
  for (const char* name : {"second", "third"}) {
    Json other = JobJson();
    other["metadata"]["name"] = name;
    Apply(TrainingJobs(), other);
    EXPECT_TRUE(Eventually([&] { return planned(name).find("pool gpu: unavailable until") != std::string::npos; },
                           "it says why"));
    StopOperator();
    StartOperator();
  }
  patch({{"limit", 3}});  // an edit of the pool ends the outage
  EXPECT_TRUE(Eventually([&] { return pool().outages.empty() && pool().conditions.IsTrue(kAvailableCondition); },
                         "the pool is available"));
}

TEST_P(BadInputTest, AnUnknownPlanner) {
  scheduler_.SetPlanner([](const model::PlanRequest& request) -> absl::StatusOr<model::PlanResult> {
    return base::NotFound("planner '{}' is not in the registry", request.planner.name);
  });
  Json job = JobJson();
  job["spec"]["planner"]["name"] = "oracle";
  Apply(TrainingJobs(), job);
  ASSERT_TRUE(WaitForCondition("Planned", "False", "UnknownPlanner"));
  EXPECT_THAT(PlannedMessage(), HasSubstr("spec.planner.name: 'oracle'"));
}

TEST_P(BadInputTest, AnInfeasibleGoalSaysWhatStandsInTheWay) {
  std::atomic<bool> feasible = false;
  scheduler_.SetPlanner([&](const model::PlanRequest&) -> absl::StatusOr<model::PlanResult> {
    model::PlanResult result;
    result.reasons = {{"limit", "gpu", 61, 2, "61 units of gpu are needed, 2 are allowed"}};
    if (feasible) return base::Unavailable("soon");
    return result;
  });
  Apply(TrainingJobs(), JobJson());
  ASSERT_TRUE(WaitForCondition("Planned", "False", "Infeasible"));
  EXPECT_EQ(PlannedMessage(), "61 units of gpu are needed, 2 are allowed (bounded by spec.limit of pool gpu)");
  // The profilers' pods are deleted, and no other pod is created.
  EXPECT_TRUE(Eventually([&] { return PodNames().empty(); }, "nothing runs"));
  scheduler_.SetPlanner(nullptr);
  scheduler_.Publish(0.6);
  EXPECT_TRUE(WaitForCondition("Planned", "True"));
}

TEST_P(BadInputTest, MissingDataFailsTheJobWithFileAndLine) {
  RunJob();
  coordinator_.Fail("file:///data/train.csv:17: 14 columns, want 15", false);
  ASSERT_TRUE(WaitForCondition("Failed", "True", "TrainingFailed"));
  EXPECT_EQ(Status().conditions.Find("Failed")->message, "file:///data/train.csv:17: 14 columns, want 15");
  EXPECT_EQ(Status().restarts, 0);
}

TEST_P(BadInputTest, AProfilerThatCannotReadTheDataFailsTheJob) {
  profiler_exit_ = 2;
  profiler_log_ = "starting\nfile:///data/train.csv: no such file\n";
  Apply(TrainingJobs(), JobJson());
  ASSERT_TRUE(WaitForCondition("Failed", "True", "ProfileFailed"));
  EXPECT_THAT(Status().conditions.Find("Failed")->message, HasSubstr("train.csv: no such file"));
}

TEST_P(BadInputTest, NewJobsWaitForAnUnavailableScheduler) {
  scheduler_.Kill();
  Apply(TrainingJobs(), JobJson());
  ASSERT_TRUE(WaitForCondition("Planned", "Unknown", "SchedulerUnavailable"));
  scheduler_.Revive();
  EXPECT_TRUE(WaitForCondition("Running", "True"));
}

TEST_P(BadInputTest, APortInUseIsAnErrorThatNamesIt) {
  OperatorOptions options;
  options.http_port = app_->http_port();
  OperatorApp second(options, *operators_, clock_);
  EXPECT_THAT(second.Start({}),
              base::StatusIs(absl::StatusCode::kUnavailable, HasSubstr(std::to_string(options.http_port))));
}

}  // namespace
}  // namespace medley::ops
