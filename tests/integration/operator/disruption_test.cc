// Nodes that will be lost: spot notices, drains, cordons, evictions. The job moves before its pods die.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "common/model/plan_result.h"
#include "operator/api/pool_status.h"
#include "operator/api/resources.h"
#include "tests/integration/operator/harness.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::Contains;
using testing::IsSupersetOf;

// Members on node n1, which has 4 gpus; the coordinator on n2, which has as many.
class DisruptionTest : public OperatorHarness {
 protected:
  void SetUp() override {
    OperatorHarness::SetUp();
    place_ = [this](const kube::Object& pod) { return pod.label(kRoleLabel) == "coordinator" ? "n2" : where_; };
  }
  void Run(const Json& second_node = {{"cpu", "64"}, {"example.com/gpu", "4"}, {"pods", "200"}}) {
    AddNode("n2", second_node);
    StartOperator();
    RunJob();
    ASSERT_TRUE(Eventually([&] { return Bound() == 5; }, "all pods on nodes"));
  }
  int Bound() {
    const auto pods = client_->List(kube::resources::Pods(), {.ns = ns_});
    int bound = 0;
    for (const kube::Object& pod : pods->items) {
      const std::string role = pod.label(kRoleLabel);
      bound += role != "profiler" && !pod.String("/spec/nodeName").empty() ? 1 : 0;
    }
    return bound;
  }
  std::pair<int64_t, std::string> Applied(size_t count) {
    Eventually([&] { return coordinator_.applied().size() >= count; }, "plan is applied");
    const auto applied = coordinator_.applied();
    return applied.empty() ? std::pair<int64_t, std::string>{} : applied.back();
  }

  std::string where_ = "n1";
};

INSTANTIATE_TEST_SUITE_P(On, DisruptionTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);

TEST_P(DisruptionTest, ASpotNoticeMovesTheJobBeforeTheNodeDies) {
  Run();
  const int asked = scheduler_.plans();
  coordinator_.SetAutoCommit(false);
  where_ = "n2";
  Taint("n1", "aws-node-termination-handler/spot-itn");
  EXPECT_EQ(Applied(2), (std::pair<int64_t, std::string>{2, "SpotNotice"}));
  const std::set<std::string> before = {"adult-0-cpu-0", "adult-0-cpu-1", "adult-1-gpu-0", "adult-server-0"};
  const std::set<std::string> after = {"adult-0-cpu-2", "adult-0-cpu-3", "adult-1-gpu-1", "adult-server-1"};
  EXPECT_EQ(coordinator_.members(), after);
  ASSERT_TRUE(Eventually([&] { return PodNames().contains("adult-1-gpu-1"); }, "new pods"));
  ASSERT_TRUE(WaitForCondition("Rescaling", "True", "SpotNotice"));
  EXPECT_TRUE(Eventually([&] { return HasEvent("SpotNotice", "spot-itn"); }, "event"));
  // Old pods stay, and train, until the new generation is in force.
  Settle();
  EXPECT_THAT(PodNames(), IsSupersetOf(before));
  EXPECT_TRUE(Status().conditions.IsTrue("Running"));
  coordinator_.Commit();
  EXPECT_TRUE(Eventually([&] { return !PodNames().contains("adult-server-0"); }, "old pods are deleted"));
  EXPECT_TRUE(WaitForCondition("Rescaling", "False", "Rescaled"));
  EXPECT_EQ(scheduler_.plans(), asked) << "the same plan fits elsewhere, so no plan is asked for";
  EXPECT_EQ(Status().restarts, 0);
  EXPECT_EQ(Status().last_rescale->reason, "SpotNotice");
}

TEST_P(DisruptionTest, ACordonMovesTooWithoutRegardToTheCooldown) {
  Run();
  scheduler_.Publish(20);
  EXPECT_EQ(Applied(2), (std::pair<int64_t, std::string>{2, "PriceChanged"}));
  ASSERT_TRUE(WaitForCondition("Rescaling", "False", "Rescaled"));
  where_ = "n2";
  PatchNode("n1", {{"spec", {{"unschedulable", true}}}});
  EXPECT_EQ(Applied(3), (std::pair<int64_t, std::string>{3, "NodeDraining"}));
  EXPECT_TRUE(Eventually([&] { return HasEvent("NodeDraining", "its cordon"); }, "event"));
  EXPECT_TRUE(Eventually([&] { return !PodNames().contains("adult-0-cpu-0"); }, "it is left"));
  Settle();
  EXPECT_EQ(coordinator_.applied().size(), 3u);  // and that is all
}

TEST_P(DisruptionTest, WithoutRoomElsewhereAnotherPlanIsAsked) {
  Run({{"cpu", "64"}, {"pods", "200"}});
  where_ = "n2";
  Taint("n1", "cloud.google.com/impending-node-termination");
  EXPECT_EQ(Applied(2).second, "SpotNotice");
  for (const model::Resource& resource : scheduler_.last().resources) {
    EXPECT_TRUE(resource.name != "gpu" || resource.limit == 0);
  }
  EXPECT_TRUE(Eventually([&] { return HasEvent("ReplanConsidered", "SpotNotice: move (Forced)"); }, "event"));
  EXPECT_TRUE(Eventually([&] { return !PodNames().contains("adult-1-gpu-0"); }, "the gpu pod is deleted"));
  EXPECT_TRUE(Eventually([&] { return !PodNames().contains("adult-0-cpu-0"); }, "all old pods"));
}

model::PlanResult Nothing() {
  model::PlanResult result;
  result.reasons = {{"limit", "cpu", 3, 0, "needs 3 units of cpu"}};
  return result;
}

TEST_P(DisruptionTest, WithoutOtherNodesTheCoordinatorIsNotified) {
  Run({{"cpu", "1"}, {"pods", "200"}});
  scheduler_.SetPlanner([](const model::PlanRequest&) { return Nothing(); });
  Taint("n1", "ToBeDeletedByClusterAutoscaler");
  EXPECT_TRUE(Eventually([&] { return HasEvent("ReplanInfeasible", "free nodes of pool cpu"); },
                         "the Event, with what bounds the units"));
  EXPECT_TRUE(coordinator_.drained().empty());
  clock_.Advance(kNoticePatience + base::seconds(1));
  EXPECT_TRUE(Eventually([&] { return coordinator_.drained().size() == 4; }, "time for a checkpoint"));
  EXPECT_THAT(PodNames(), Contains("adult-1-gpu-0"));
  EXPECT_EQ(coordinator_.applied().size(), 1u);
}

TEST_P(DisruptionTest, ACordonWithNowhereToGoDisturbsNothing) {
  Run({{"cpu", "1"}, {"pods", "200"}});
  scheduler_.SetPlanner([](const model::PlanRequest&) { return Nothing(); });
  PatchNode("n1", {{"spec", {{"unschedulable", true}}}});
  EXPECT_TRUE(Eventually([&] { return HasEvent("ReplanInfeasible"); }, "the Event"));
  clock_.Advance(kNoticePatience + base::seconds(60));
  Settle();
  EXPECT_TRUE(coordinator_.drained().empty());
  EXPECT_EQ(coordinator_.applied().size(), 1u);
  EXPECT_TRUE(Status().conditions.IsTrue("Running"));
}

TEST_P(DisruptionTest, ADisruptedPodAloneIsReplaced) {
  Run();
  // kube-controller-manager clears a condition that is two minutes old, or that has no time.
  const Json condition = {{"type", "DisruptionTarget"},
                          {"status", "True"},
                          {"reason", "EvictionByEvictionAPI"},
                          {"lastTransitionTime", base::FormatTime(base::SystemClock().Now())}};
  SetPod("adult-0-cpu-1", {{"conditions", Json::array({condition})}});
  EXPECT_EQ(Applied(2).second, "PodDisrupted");
  EXPECT_EQ(coordinator_.members(),
            (std::set<std::string>{"adult-0-cpu-0", "adult-0-cpu-2", "adult-1-gpu-0", "adult-server-0"}));
  EXPECT_TRUE(Eventually([&] { return HasEvent("PodDisrupted", "adult-0-cpu-1"); }, "event"));
}

TEST_P(DisruptionTest, ADeletedPodIsReplacedBeforeItIsGone) {
  Run();
  kubelet_on_ = false;  // the pod takes its time
  ASSERT_THAT(client_->Delete(kube::resources::Pods(), {ns_, "adult-1-gpu-0"}, {.grace_period_seconds = 600}),
              base::IsOk());
  EXPECT_EQ(Applied(2).second, "PodDisrupted");
  kubelet_on_ = true;
  EXPECT_EQ(coordinator_.members(),
            (std::set<std::string>{"adult-0-cpu-0", "adult-0-cpu-1", "adult-1-gpu-1", "adult-server-0"}));
  EXPECT_TRUE(Eventually([&] { return HasEvent("PodDisrupted", "adult-1-gpu-0"); }, "event"));
  EXPECT_TRUE(Eventually([&] { return PodNames().contains("adult-1-gpu-1"); }, "its replacement"));
}

TEST_P(DisruptionTest, UnitsOnANodeThatGoesAreNotFree) {
  Run();
  const auto capacity = [&] {
    return PoolStatus::FromJson(Get(ResourcePools(), {"", "gpu"}).At("/status")).units.capacity;
  };
  EXPECT_TRUE(Eventually([&] { return capacity() == 8; }, "both nodes"));
  Taint("n2", "karpenter.sh/disrupted");
  EXPECT_TRUE(Eventually([&] { return capacity() == 4; }, "one of them"));
  PatchNode("n2", {{"spec", {{"taints", nullptr}}}});
  EXPECT_TRUE(Eventually([&] { return capacity() == 8; }, "it stays after all"));
}

TEST_P(DisruptionTest, PodsThatTolerateAllAreKeptOffNodesThatGo) {
  const Json all = Json::array({{{"operator", "Exists"}}});
  ASSERT_THAT(client_->Patch(ResourcePools(), {"", "gpu"}, kube::PatchType::kMerge, {{"spec", {{"tolerations", all}}}}),
              base::IsOk());
  Run();
  where_ = "n2";
  Taint("n1", "karpenter.sh/disrupted");
  EXPECT_EQ(Applied(2).second, "NodeDraining");
  ASSERT_TRUE(Eventually([&] { return PodNames().contains("adult-1-gpu-1"); }, "new pods"));
  const Json field = {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", Json::array({"n1"})}};
  EXPECT_EQ(Get(kube::resources::Pods(), {ns_, "adult-1-gpu-1"})
                .At("/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
                    "nodeSelectorTerms/0/matchFields"),
            Json::array({field}));
  EXPECT_TRUE(Get(kube::resources::Pods(), {ns_, "adult-0-cpu-2"}).At("/spec/affinity").is_null());
}

// The node stays NotReady, and its pods Terminating, because no kubelet answers.
TEST_P(DisruptionTest, ACoordinatorOnADeadNodeIsReplacedAndTheMembersStay) {
  AddNode("n2", {{"cpu", "64"}, {"pods", "200"}});
  StartOperator();
  Json job = JobJson();
  job["spec"]["checkpoint"]["volume"] = {{"mountPath", "/checkpoints"},
                                         {"persistentVolumeClaim", {{"claimName", "c"}}}};
  Apply(TrainingJobs(), job);
  ASSERT_TRUE(WaitForCondition("Running", "True"));
  ASSERT_TRUE(WaitForCondition("PodsReady", "True"));
  ASSERT_TRUE(Eventually([&] { return Bound() == 5; }, "all pods on nodes"));
  const std::string member = Get(kube::resources::Pods(), {ns_, "adult-0-cpu-0"}).uid();
  dead_nodes_ = {"n2"};
  SetNodeReady("n2", false);
  place_ = [](const kube::Object&) { return "n1"; };
  ASSERT_THAT(client_->Delete(kube::resources::Pods(), {ns_, "adult-coordinator"}, {.grace_period_seconds = 30}),
              base::IsOk());  // as the node's controller does
  ASSERT_TRUE(Eventually([&] { return PodNames().contains("adult-coordinator-2"); }, "a successor"));
  Settle();
  EXPECT_EQ(Status().restarts, 0) << "the kubelet has some time to answer";
  clock_.Advance(base::seconds(70));
  ASSERT_TRUE(Eventually([&] { return Status().restarts == 1; }, "the successor leads"));
  ASSERT_TRUE(WaitForCondition("Restarting", "False"));
  EXPECT_TRUE(WaitForCondition("Running", "True"));
  EXPECT_THAT(PodNames(), Contains("adult-coordinator"));
  EXPECT_EQ(Get(kube::resources::Pods(), {ns_, "adult-0-cpu-0"}).uid(), member);
  EXPECT_EQ(Status().restarts, 1);
  EXPECT_EQ(Status().counted_restarts, 0);
  EXPECT_EQ(Status().coordinator_term, 2);
}

}  // namespace
}  // namespace medley::ops
