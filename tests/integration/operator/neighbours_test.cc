// A pool that cannot be measured must not disturb jobs, and jobs with the same model share profiles.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "common/model/planning.h"
#include "operator/api/resources.h"
#include "tests/integration/operator/harness.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::HasSubstr;

class NeighboursTest : public OperatorHarness {
 protected:
  void SetUp() override {
    OperatorHarness::SetUp();
    StartOperator();
  }
  void AddPool(const std::string& name) {
    Json pool = Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool", "metadata": {},
      "spec": {"class": "CPU", "limit": 4, "unit": {"resources": {"cpu": "1"}}, "price": {"usdPerUnitHour": "9"}}})");
    pool["metadata"]["name"] = name;
    Apply(ResourcePools(), pool);
  }
  // "False/ProfilerFailed: ..."; empty: the pool has no condition Profiled.
  std::string Profiled(const std::string& pool) {
    const kube::Object object = Get(ResourcePools(), {"", pool});
    for (const Json& condition : object.At("/status/conditions")) {
      if (condition["type"] != "Profiled") continue;
      return condition["status"].get<std::string>() + "/" + condition["reason"].get<std::string>() + ": " +
             condition["message"].get<std::string>();
    }
    return "";
  }
};

INSTANTIATE_TEST_SUITE_P(On, NeighboursTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);

TEST_P(NeighboursTest, ABrokenPoolDoesNotHarmAJobThatRuns) {
  RunJob();
  profiler_exits_["broken"] = 137;
  AddPool("broken");
  ASSERT_TRUE(Eventually([&] { return Profiled("broken").starts_with("False/ProfilerFailed"); }, "the pool says so"));
  EXPECT_THAT(Profiled("broken"), HasSubstr("adult-profile-broken of pool broken was killed by signal 9."));
  Settle();
  EXPECT_TRUE(Status().conditions.IsTrue("Running"));
  EXPECT_TRUE(Status().conditions.IsTrue("Planned"));
  EXPECT_EQ(Status().restarts, 0);
  EXPECT_EQ(coordinator_.applied().size(), 1u);
  // An administrator mends it.
  profiler_exits_.clear();
  EXPECT_TRUE(Eventually([&] { return Profiled("broken").starts_with("True/Measured"); }, "measured after all"));
  EXPECT_TRUE(Eventually([&] { return HasEvent("ReplanConsidered", "CapacityChanged"); }, "considered"));
}

TEST_P(NeighboursTest, ABrokenPoolDoesNotKeepAJobFromStarting) {
  profiler_exits_["broken"] = 1;
  AddPool("broken");
  RunJob();
  EXPECT_EQ(scheduler_.last().resources.size(), 2u);
  EXPECT_EQ(Status().restarts, 0);
}

TEST_P(NeighboursTest, JobsWithTheSameModelShareOneProfilerAPool) {
  kubelet_on_ = false;
  Apply(TrainingJobs(), JobJson("adult"));
  ASSERT_TRUE(Eventually([&] { return PodNames().size() == 2; }, "two profilers"));
  Apply(TrainingJobs(), JobJson("second"));
  Settle();
  EXPECT_EQ(PodNames(), (std::set<std::string>{"adult-profile-cpu", "adult-profile-gpu"}));
  // The job for which they were created ends; the other one still wants their results.
  PatchSpec("adult", {{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(Eventually([&] { return Status("adult").conditions.IsTrue("Suspended"); }, "suspended"));
  kubelet_on_ = true;
  EXPECT_TRUE(Eventually([&] { return Status("second").conditions.IsTrue("Planned"); }, "planned"));
}

TEST_P(NeighboursTest, AnOperatorOfAnotherNamespaceLeavesProfilersAlone) {
  kubelet_on_ = false;
  Apply(TrainingJobs(), JobJson());
  ASSERT_TRUE(Eventually([&] { return PodNames().size() == 2; }, "two profilers"));
  const std::string uid = Get(kube::resources::Pods(), {ns_, "adult-profile-cpu"}).uid();
  OperatorOptions options = Options();
  options.ns = "elsewhere";
  OperatorApp other(options, *operators_, clock_);
  ASSERT_THAT(other.Start({}), base::IsOk());
  Settle();
  EXPECT_EQ(Get(kube::resources::Pods(), {ns_, "adult-profile-cpu"}).uid(), uid);
  other.Stop();
}

TEST_P(NeighboursTest, ProfilersWaitForEachOtherWhereTheyAreBounded) {
  StopOperator();
  max_profilers_ = 1;
  StartOperator();
  kubelet_on_ = false;
  Apply(TrainingJobs(), JobJson());
  ASSERT_TRUE(Eventually([&] { return PodNames().size() == 1; }, "one profiler"));
  Settle();
  EXPECT_EQ(PodNames().size(), 1u);
  kubelet_on_ = true;
  EXPECT_TRUE(Eventually([&] { return Status().conditions.IsTrue("Planned"); }, "planned"));
  EXPECT_EQ(scheduler_.last().resources.size(), 2u);
}

// The Node object of a dead machine stays, so the pods on it do too: nobody says that they have ended.
TEST_P(NeighboursTest, AProfilerOnADeadNodeKeepsNoPoolFromBeingMeasured) {
  StopOperator();
  max_profilers_ = 1;
  StartOperator();
  AddNode("n2", {{"cpu", "64"}, {"example.com/gpu", "4"}, {"pods", "200"}});  // as n1
  kubelet_on_ = false;
  Apply(TrainingJobs(), JobJson());
  ASSERT_TRUE(Eventually([&] { return PodNames().size() == 1; }, "one profiler"));
  const kube::Key key{ns_, *PodNames().begin()};
  const kube::Object pod = Get(kube::resources::Pods(), key);
  Bind(pod, "n1");
  SetPod(key.name, {{"phase", "Running"}});
  SetNodeReady("n1", false);
  ASSERT_THAT(client_->Delete(kube::resources::Pods(), key), base::IsOk());  // as the cluster does after a while
  Settle();
  EXPECT_EQ(Get(kube::resources::Pods(), key).uid(), pod.uid());
  clock_.Advance(base::seconds(120));
  const auto replaced = [&] {
    const auto now = client_->Get(kube::resources::Pods(), key);
    return !now.ok() || now->uid() != pod.uid();
  };
  ASSERT_TRUE(Eventually(replaced, "its deletion is forced"));
  kubelet_on_ = true;
  EXPECT_TRUE(Eventually([&] { return Status().conditions.IsTrue("Planned"); }, "planned"));
  EXPECT_EQ(scheduler_.last().resources.size(), 2u);
}

TEST_P(NeighboursTest, ProfilersThatNobodyWantsAreDeleted) {
  kubelet_on_ = false;
  Apply(TrainingJobs(), JobJson());
  ASSERT_TRUE(Eventually([&] { return PodNames().size() == 2; }, "two profilers"));
  PatchSpec("adult", {{"runPolicy", {{"suspend", true}}}});
  kubelet_on_ = true;
  profiler_exit_ = 1;
  EXPECT_TRUE(Eventually([&] { return PodNames().empty(); }, "deleted"));
  Settle();
  EXPECT_TRUE(PodNames().empty());
}

}  // namespace
}  // namespace medley::ops
