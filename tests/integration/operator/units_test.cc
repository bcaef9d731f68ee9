// Jobs that compete for the units of a pool: its limit holds at every moment, and a job that waits is planned as soon
// as units are free, by priority and age.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "operator/api/resources.h"
#include "operator/capacity/capacity_watch.h"
#include "tests/integration/operator/harness.h"

namespace medley::ops {
namespace {

using kube::Json;

constexpr int kLimit = 4;

class UnitsTest : public OperatorHarness {
 protected:
  void SetUp() override {
    OperatorHarness::SetUp();
    recheck_ = std::chrono::hours(1);  // nothing is found by a poll
    Json pool = Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool",
      "metadata": {"name": "scarce"},
      "spec": {"class": "CPU", "scaling": "Autoscaled", "unit": {"resources": {"cpu": "1"}},
               "price": {"usdPerUnitHour": "1"}}})");
    pool["spec"]["limit"] = kLimit;
    Apply(ResourcePools(), pool);
    scheduler_.SetPlanner([this](const model::PlanRequest& request) { return Plan(request); });
    StartOperator();
  }
  void TearDown() override {
    for (const std::string& name : classes_) {
      EXPECT_THAT(client_->Delete(PriorityClasses(), {"", name}), base::IsOk());
    }
    OperatorHarness::TearDown();
  }

  void AddPriorityClass(const std::string& name, int value) {
    classes_.push_back(ns_ + "-" + name);
    Apply(PriorityClasses(), {{"apiVersion", "scheduling.k8s.io/v1"},
                              {"kind", "PriorityClass"},
                              {"metadata", {{"name", classes_.back()}}},
                              {"value", value}});
  }
  void AddJob(const std::string& name, const std::string& priority = "") {
    Json job = JobJson(name);
    job["spec"]["resources"]["pools"] = Json::array({"scarce"});
    if (!priority.empty()) job["spec"]["runPolicy"]["schedulingPolicy"]["priorityClass"] = ns_ + "-" + priority;
    Apply(TrainingJobs(), job);
  }
  // Three units. The first plans wait for each other, so that all are made from the same numbers.
  absl::StatusOr<model::PlanResult> Plan(const model::PlanRequest& request) {
    {
      base::MutexLock lock(mutex_);
      ++asked_;
      changed_.NotifyAll();
      changed_.WaitFor(mutex_, {}, base::seconds(10),
                       [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return asked_ >= together_; });
    }
    const auto limit = static_cast<int>(request.resources.front().limit);
    model::PlanResult result;
    if (limit < 3) {
      result.reasons = {{"limit", "scarce", 3, static_cast<double>(limit), "needs 3 units of scarce"}};
      return result;
    }
    model::ExecutionPlan plan;
    plan.stages = {{{{0, 3}}, {{"scarce", 3, 1}}, {}, 0}};
    plan.estimate.throughput = 1500;
    model::ProvisionedPlan provisioned;
    provisioned.stages = {{0, 2, "scarce", 3, 1500.0, 0, 0}};
    provisioned.throughput = 1500;
    provisioned.cost_per_hour = 3;
    result.plan = provisioned;
    result.execution_plan = plan;
    return result;
  }
  void PlanTogether(int jobs) {
    base::MutexLock lock(mutex_);
    asked_ = 0;
    together_ = jobs;
  }
  // The units of each job that has any; fails the test when they are too many in all.
  std::map<std::string, int> Units() {
    std::map<std::string, int> units;
    int all = 0;
    const auto pods = client_->List(kube::resources::Pods(), {.ns = ns_});
    EXPECT_THAT(pods, base::IsOk());
    if (!pods.ok()) return units;
    for (const kube::Object& pod : pods->items) {
      if (pod.label(kRoleLabel) != "trainer") continue;
      ++units[pod.label(kJobNameLabel)];
      ++all;
    }
    EXPECT_LE(all, kLimit);
    return units;
  }
  bool Holds(const std::string& job) {
    std::map<std::string, int> units;
    const bool holds = Eventually(
        [&] {
          return (units = Units()) == std::map<std::string, int>{{job, 3}};
        },
        "3 units of " + job);
    EXPECT_TRUE(holds) << "the units are those of: " << testing::PrintToString(units);
    return holds;
  }

  base::Mutex mutex_;
  base::CondVar changed_;
  int asked_ ABSL_GUARDED_BY(mutex_) = 0;
  int together_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> classes_;
};

INSTANTIATE_TEST_SUITE_P(On, UnitsTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);

TEST_P(UnitsTest, TwoJobsThatArePlannedTogetherDoNotGetTheSameUnits) {
  PlanTogether(2);
  AddJob("one");
  AddJob("two");
  ASSERT_TRUE(Eventually([&] { return !Units().empty(); }, "units of one job"));
  const std::string first = Units().begin()->first;
  const std::string second = first == "one" ? "two" : "one";
  ASSERT_TRUE(Holds(first));
  // At first it may say that it is planned after the other one.
  const auto is_bounded = [&] {
    const Conditions conditions = Status(second).conditions;
    return conditions.IsFalse("Planned") &&
           conditions.Find("Planned")->message.find("spec.limit of pool scarce") != std::string::npos;
  };
  ASSERT_TRUE(Eventually(is_bounded, "the other one waits for units of the pool"));
  // It is woken.
  PatchSpec(first, {{"runPolicy", {{"suspend", true}}}});
  EXPECT_TRUE(Holds(second));
}

TEST_P(UnitsTest, AfterARestartOfTheOperatorNobodyGetsUnitsThatAPlanHas) {
  AddJob("one");
  ASSERT_TRUE(Holds("one"));
  StopOperator();
  // Its pods are lost while nobody watches.
  for (const std::string& name : PodNames()) {
    ASSERT_THAT(client_->Delete(kube::resources::Pods(), {ns_, name}, {.grace_period_seconds = 0}), base::IsOk());
  }
  AddJob("another");
  StartOperator();
  EXPECT_TRUE(Holds("one"));
  EXPECT_TRUE(Eventually([&] { return Status("another").conditions.IsFalse("Planned"); }, "the other one waits"));
}

TEST_P(UnitsTest, WaitingJobsArePlannedByPriorityThenAge) {
  AddPriorityClass("urgent", 1000);
  AddJob("first");
  ASSERT_TRUE(Holds("first"));
  for (const char* name : {"b-older", "a-younger"}) {
    AddJob(name);
    ASSERT_TRUE(Eventually([&] { return Status(name).conditions.IsFalse("Planned"); }, std::string(name) + " waits"));
    // The age of jobs is known to the second.
    const std::string created = Get(TrainingJobs(), {ns_, name}).String("/metadata/creationTimestamp");
    ASSERT_TRUE(
        Eventually([&] { return base::FormatTime(base::SystemClock().Now()).substr(0, 19) > created.substr(0, 19); },
                   "another second"));
  }
  AddJob("urgent", "urgent");
  ASSERT_TRUE(Eventually([&] { return Status("urgent").conditions.IsFalse("Planned"); }, "urgent waits"));
  std::string holder = "first";
  for (const char* next : {"urgent", "b-older", "a-younger"}) {
    PatchSpec(holder, {{"runPolicy", {{"suspend", true}}}});
    ASSERT_TRUE(Holds(next));
    holder = next;
  }
}

// The units of a pool that a job may hold are those that its own pods, with their templates, find room for.
TEST_P(UnitsTest, TheTemplateOfARoleDecidesWhichNodesCount) {
  AddNode("ssd", {{"cpu", "3"}, {"pods", "10"}});
  PatchNode("ssd", {{"metadata", {{"labels", {{"disk", "ssd"}}}}}});
  Json job = JobJson();
  job["spec"]["template"]["trainers"]["spec"]["nodeSelector"] = {{"disk", "ssd"}};
  job["spec"]["template"]["coordinator"]["spec"]["nodeSelector"] = {{"capacity", "on-demand"}};
  Apply(TrainingJobs(), job);
  const auto offered = [&] {
    const model::PlanRequest request = scheduler_.last();
    for (const model::Resource& resource : request.resources) {
      if (resource.name == "cpu") return resource.limit;
    }
    return -1;
  };
  EXPECT_TRUE(Eventually([&] { return offered() == 3; }, "the three units of the node with the label"));
  // The node of a pool's own template counts as well, in the pool's status.
  ASSERT_THAT(client_->Patch(ResourcePools(), {"", "cpu"}, kube::PatchType::kMerge,
                             {{"spec", {{"template", {{"spec", {{"nodeSelector", {{"disk", "ssd"}}}}}}}}}}),
              base::IsOk());
  EXPECT_TRUE(Eventually(
      [&] {
        return Get(ResourcePools(), {"", "cpu"}).At("/status/units/capacity") == Json(3);
      },
      "capacity of the pool"));
  if (Exists(kube::resources::Pods(), {ns_, "adult-coordinator"})) {
    EXPECT_EQ(Get(kube::resources::Pods(), {ns_, "adult-coordinator"}).String("/spec/nodeSelector/capacity"),
              "on-demand");
  }
}

}  // namespace
}  // namespace medley::ops
