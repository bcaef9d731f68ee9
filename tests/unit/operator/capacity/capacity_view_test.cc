#include "operator/capacity/capacity_view.h"

#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"

namespace medley::ops {
namespace {

using kube::Json;

kube::Object Node(const char* name, const char* allocatable, const char* spec = "{}") {
  return kube::Object(Json{{"metadata", {{"name", name}, {"labels", {{"kind", "a"}}}}},
                           {"spec", Json::parse(spec)},
                           {"status", {{"allocatable", Json::parse(allocatable)}}}});
}

kube::Object Pod(const char* name, const char* job, const char* role, const char* node, const char* cpu = "2") {
  Json json = {{"metadata",
                {{"name", name},
                 {"namespace", "ns"},
                 {"labels", {{"medley.dev/job-name", job}, {"medley.dev/role", role}, {"medley.dev/pool", "a"}}}}},
               {"spec", {{"containers", Json::array({{{"resources", {{"requests", {{"cpu", cpu}}}}}}})}}},
               {"status", {{"phase", "Running"}}}};
  if (*node != '\0') json["spec"]["nodeName"] = node;
  if (*job != '\0') {
    json["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "medley.dev/v1alpha1"},
                                                        {"kind", "TrainingJob"},
                                                        {"name", job},
                                                        {"uid", std::string("uid-") + job},
                                                        {"controller", true}}});
  }
  return kube::Object(json);
}

class CapacityViewTest : public testing::Test {
 protected:
  CapacityViewTest() {
    pool_.name = "a";
    pool_.limit = 10;
    unit_.amounts.requests = {{"cpu", 2000}};
    unit_.node_selector = {{"kind", "a"}};
  }
  int For(const char* job) const { return view_.UnitsFor(pool_, unit_, {"ns", job}).units; }
  absl::Status Reserve(const std::string& job, const std::vector<std::string>& pods,
                       const std::vector<std::string>& until_switch = {}) {
    const auto pool = std::make_shared<const ResourcePool>(pool_);
    const auto demand = std::make_shared<const PodDemand>(unit_);
    std::vector<PlannedUnit> units;
    for (const std::string& pod : pods) units.push_back({{"ns", pod}, pool, demand});
    for (const std::string& pod : until_switch) units.push_back({{"ns", pod}, pool, demand, true});
    return view_.Reserve({{"ns", job}, "uid-" + job}, units);
  }
  absl::Status ReserveFor(Holder holder, const std::string& job, const std::string& pod, const PodDemand& demand) {
    const auto pool = holder == Holder::kCoordinator ? nullptr : std::make_shared<const ResourcePool>(pool_);
    const std::string owner = holder == Holder::kProfiler ? "profile of " + job : "uid-" + job;
    return view_.Reserve({{"ns", job}, owner},
                         {{{"ns", pod}, pool, std::make_shared<const PodDemand>(demand), false, holder}});
  }
  int Free() const { return view_.UnitsOf(pool_, unit_).free; }

  CapacityView view_;
  ResourcePool pool_;
  PodDemand unit_;
};

TEST_F(CapacityViewTest, OnlyPodsOfKnownJobsAreUnits) {
  view_.ExpectJobs("");
  view_.PutNode(Node("n", R"({"cpu": "20"})"));
  view_.PutPod(Pod("x", "ghost", "trainer", ""));
  EXPECT_EQ(Free(), 10) << "no job of this name exists";
  EXPECT_EQ(view_.UnitsFor(pool_, unit_, {"ns", "mine"}).held_by_others, 0);
  EXPECT_TRUE(view_.NamespacesOn("a").empty());
  view_.PutJob({"ns", "ghost"}, "uid-of-another");
  EXPECT_EQ(Free(), 10) << "a job of this name exists, and does not own the pod";
  view_.PutJob({"ns", "ghost"}, "uid-ghost");
  EXPECT_EQ(Free(), 9) << "the cache of jobs was behind that of pods";
  EXPECT_EQ(view_.UnitsFor(pool_, unit_, {"ns", "mine"}).others, std::vector<kube::Key>({{"ns", "ghost"}}));
  view_.EraseJob({"ns", "ghost"});
  view_.PutPod(Pod("x", "ghost", "trainer", "n"));
  EXPECT_EQ(Free(), 9) << "the pod of a job that is deleted holds its unit until it has ended";
  view_.ErasePod({"ns", "x"});
  view_.PutPod(Pod("x", "ghost", "trainer", "n"));
  EXPECT_EQ(Free(), 9) << "room on the node only";
  EXPECT_EQ(view_.UnitsOf(pool_, unit_).used, 0);
}

TEST_F(CapacityViewTest, JobsOfOtherOperatorsAreNotKnown) {
  view_.ExpectJobs("mine");
  view_.PutNode(Node("n", R"({"cpu": "20"})"));
  view_.PutPod(Pod("x", "ghost", "trainer", ""));
  EXPECT_EQ(view_.UnitsOf(pool_, unit_).used, 1) << "in namespace ns, whose jobs this operator does not list";
}

// Whatever labels and owners its editors give it or take from it: a pod of the plan is a unit of the plan.
TEST_F(CapacityViewTest, APlannedPodIsAUnitWhateverItSays) {
  view_.ExpectJobs("");
  view_.PutJob({"ns", "mine"}, "uid-mine");
  view_.PutNode(Node("n", R"({"cpu": "20"})"));
  EXPECT_THAT(Reserve("mine", {"p"}), base::IsOk());
  for (const kube::Object& pod : {Pod("p", "", "", "n"), Pod("p", "other", "profiler", "n"),
                                  Pod("p", "mine", "coordinator", "n"), Pod("p", "mine", "trainer", "")}) {
    view_.PutPod(pod);
    EXPECT_EQ(view_.UnitsOf(pool_, unit_).used, 1) << pod.json();
    EXPECT_EQ(view_.UnitsFor(pool_, unit_, {"ns", "else"}).others, std::vector<kube::Key>({{"ns", "mine"}}));
  }
  view_.PutPod(Pod("p", "", "", "n"));
  view_.Release("uid-mine");
  EXPECT_EQ(view_.UnitsOf(pool_, unit_).used, 0) << "a pod of nobody";
}

// A pod that exists already has the name of a planned one: it is no unit less.
TEST_F(CapacityViewTest, APlanCountsUnitsWhoseNamesAreTaken) {
  view_.ExpectJobs("");
  view_.PutNode(Node("n", R"({"cpu": "20"})"));
  view_.PutPod(Pod("p", "", "", "n"));
  EXPECT_THAT(Reserve("mine", {"p", "q"}), base::IsOk());
  EXPECT_EQ(view_.UnitsFor(pool_, unit_, {"ns", "else"}).held_by_others, 2);
}

TEST_F(CapacityViewTest, UnitsAreCountedNodeByNode) {
  view_.PutNode(Node("n1", R"({"cpu": "5"})"));
  view_.PutNode(Node("n2", R"({"cpu": "3"})"));
  view_.PutPod(Pod("p", "j", "trainer", "n1"));
  view_.PutPod(Pod("q", "", "", "n2", "1500m"));
  const PoolUnits units = view_.UnitsOf(pool_, unit_);
  EXPECT_EQ(units.capacity, 3);  // 2 + 1: half a unit on each of two nodes does not count
  EXPECT_EQ(units.used, 1);
  EXPECT_EQ(units.free, 1);
}

TEST_F(CapacityViewTest, ZonesAreThoseOfNodesThatCouldHoldAUnit) {
  const auto in = [](const char* zone, kube::Object node) {
    node.SetLabel("topology.kubernetes.io/zone", zone);
    return node;
  };
  EXPECT_FALSE(view_.ZonesOf(pool_, unit_).pinnable);
  view_.PutNode(Node("local", R"({"cpu": "8"})"));
  EXPECT_FALSE(view_.ZonesOf(pool_, unit_).pinnable) << "a node without the label takes no pinned pod";
  pool_.scaling = PoolScaling::kAutoscaled;
  EXPECT_FALSE(view_.ZonesOf(pool_, unit_).pinnable) << "no node of the cluster carries the label";
  view_.PutNode(in("a", Node("n1", R"({"cpu": "8"})")));
  view_.PutNode(in("small", Node("n2", R"({"cpu": "1"})")));
  view_.PutNode(in("cordoned", Node("n3", R"({"cpu": "8"})", R"({"unschedulable": true})")));
  view_.PutPod(Pod("p", "j", "trainer", "n1", "7"));
  EXPECT_TRUE(view_.ZonesOf(pool_, unit_).pinnable);
  EXPECT_EQ(view_.ZonesOf(pool_, unit_).zones, (std::set<std::string>{})) << "an autoscaler brings nodes anywhere";
  pool_.scaling = PoolScaling::kNodes;
  EXPECT_TRUE(view_.ZonesOf(pool_, unit_).pinnable);
  EXPECT_EQ(view_.ZonesOf(pool_, unit_).zones, (std::set<std::string>{"a", "cordoned"}));
}

TEST_F(CapacityViewTest, ANodeWithoutCpuNumbersHasEnoughButNoOtherResource) {
  view_.PutNode(Node("n", "{}"));
  EXPECT_EQ(Free(), 10);
  unit_.amounts.requests["nvidia.com/gpu"] = 1;
  EXPECT_EQ(Free(), 0);
}

TEST_F(CapacityViewTest, NodesThatCannotBeUsedHaveNoUnits) {
  view_.PutNode(Node("n", R"({"cpu": "8"})", R"({"unschedulable": true})"));
  EXPECT_EQ(Free(), 0);
  view_.PutNode(Node("n", R"({"cpu": "8"})"));
  EXPECT_EQ(Free(), 4);
  view_.PutNode(Node("n", R"({"cpu": "8"})", R"({"taints": [{"key": "gpu", "value": "x", "effect": "NoSchedule"}]})"));
  EXPECT_EQ(Free(), 0);
  unit_.tolerations = Json::array({{{"key", "gpu"}, {"operator", "Exists"}}});
  EXPECT_EQ(Free(), 4);
  unit_.node_selector = {{"kind", "b"}};
  EXPECT_EQ(Free(), 0);
}

TEST_F(CapacityViewTest, AJobMayReuseItsUnitsButNotItsCoordinator) {
  view_.PutNode(Node("n", R"({"cpu": "8"})"));
  view_.PutPod(Pod("m1", "mine", "trainer", "n"));
  view_.PutPod(Pod("m2", "mine", "server", "n"));
  view_.PutPod(Pod("o", "other", "trainer", "n"));
  EXPECT_EQ(For("mine"), 3);
  EXPECT_EQ(For("third"), 1);
  view_.PutPod(Pod("m0", "mine", "coordinator", "n", "100m"));
  EXPECT_EQ(For("mine"), 2);
  pool_.limit = 2;
  EXPECT_EQ(For("mine"), 1);
  EXPECT_EQ(view_.UnitsFor(pool_, unit_, {"ns", "mine"}).bound, "spec.limit of pool a");
}

TEST_F(CapacityViewTest, WhatOtherJobsHoldIsNamed) {
  view_.PutNode(Node("n", R"({"cpu": "8"})"));
  view_.PutPod(Pod("m", "mine", "trainer", "n"));
  view_.PutPod(Pod("o1", "other", "trainer", "n"));
  view_.PutPod(Pod("o2", "other", "server", "n"));
  ASSERT_THAT(Reserve("third", {"t"}), base::IsOk());
  JobUnits units = view_.UnitsFor(pool_, unit_, {"ns", "mine"});
  EXPECT_EQ(units.units, 1);
  EXPECT_EQ(units.held_by_others, 3);
  EXPECT_THAT(units.others, testing::ElementsAre(kube::Key{"ns", "other"}, kube::Key{"ns", "third"}));
  pool_.limit = 2;  // which the others exceed: they could give back no more than that
  EXPECT_EQ(view_.UnitsFor(pool_, unit_, {"ns", "mine"}).held_by_others, 2);
  pool_.limit = 10;
  view_.ErasePod({"ns", "o1"});
  view_.ErasePod({"ns", "o2"});
  view_.Release("uid-third");
  units = view_.UnitsFor(pool_, unit_, {"ns", "mine"});
  EXPECT_EQ(units.held_by_others, 0);
  EXPECT_THAT(units.others, testing::IsEmpty());
}

TEST_F(CapacityViewTest, UnitsOnANodeWithANoticeDoNotCount) {
  view_.PutNode(Node("n1", R"({"cpu": "4"})"));
  view_.PutNode(Node("n2", R"({"cpu": "4"})"));
  view_.PutPod(Pod("m1", "mine", "trainer", "n1"));
  view_.PutPod(Pod("m2", "mine", "trainer", "n2"));
  EXPECT_EQ(For("mine"), 4);
  view_.PutNode(
      Node("n1", R"({"cpu": "4"})", R"({"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]})"));
  EXPECT_EQ(For("mine"), 2);
  EXPECT_EQ(view_.JobsOn("n1"), (std::set<kube::Key>{{"ns", "mine"}}));
  EXPECT_EQ(view_.NoticeOf("n1")->sign, "taint karpenter.sh/disrupted");
  // Until it is deleted, a pod counts against the pool's limit.
  pool_.limit = 2;
  EXPECT_EQ(For("mine"), 1);
  EXPECT_EQ(For("third"), 0);
  EXPECT_TRUE(view_.NodesToAvoid(unit_).empty());
  unit_.tolerations = Json::array({{{"operator", "Exists"}}});
  EXPECT_EQ(view_.NodesToAvoid(unit_), std::vector<std::string>{"n1"});
}

TEST_F(CapacityViewTest, UnitsThatWaitForANodeWillTakeOne) {
  view_.PutNode(Node("n", R"({"cpu": "8"})"));
  view_.PutPod(Pod("o", "other", "trainer", ""));
  EXPECT_EQ(For("mine"), 3);
  EXPECT_EQ(For("other"), 4);
  EXPECT_EQ(Free(), 3);
}

TEST_F(CapacityViewTest, OnlyTheLimitBoundsAutoscaledPools) {
  pool_.scaling = PoolScaling::kAutoscaled;
  EXPECT_EQ(For("mine"), 10);
  EXPECT_EQ(Free(), 10);
}

TEST_F(CapacityViewTest, QuotasOfTheNamespaceAlsoLimit) {
  pool_.scaling = PoolScaling::kAutoscaled;
  const auto quota = [](const char* ns, const char* hard, const char* used) {
    return kube::Object(Json{{"metadata", {{"name", "q"}, {"namespace", ns}}},
                             {"status", {{"hard", Json::parse(hard)}, {"used", Json::parse(used)}}}});
  };
  view_.PutPod(Pod("m", "mine", "trainer", ""));
  view_.PutQuota(quota("else", R"({"pods": "0"})", "{}"));
  EXPECT_EQ(For("mine"), 10);
  view_.PutQuota(quota("ns", R"({"requests.cpu": "9"})", R"({"requests.cpu": "3"})"));
  EXPECT_EQ(For("mine"), 4);  // 6 left by the quota, and 2 that the job holds
  EXPECT_EQ(view_.UnitsFor(pool_, unit_, {"ns", "mine"}).bound, "ResourceQuota q: requests.cpu");
  view_.EraseQuota({"ns", "q"});
  EXPECT_EQ(For("mine"), 10);
}

TEST_F(CapacityViewTest, LimitRangesOfTheNamespaceGiveDefaults) {
  view_.PutLimitRange(kube::Object(Json::parse(R"({"metadata": {"name": "l", "namespace": "ns"},
      "spec": {"limits": [{"type": "Container", "defaultRequest": {"memory": "1Gi"}}]}})")));
  kube::Object pod = Pod("p", "j", "trainer", "");
  EXPECT_EQ(AmountOf(view_.Demand(pod).amounts.requests, "memory"), 1LL << 30);
  pod.mutable_json()["metadata"]["namespace"] = "else";
  EXPECT_EQ(AmountOf(view_.Demand(pod).amounts.requests, "memory"), 0);
}

TEST_F(CapacityViewTest, ReservedUnitsCountUntilTheirPodsDoAndAgainWhenTheyAreLost) {
  view_.PutNode(Node("n", R"({"cpu": "8"})"));
  EXPECT_TRUE(Reserve("mine", {"m1", "m2"}).ok());
  EXPECT_EQ(For("mine"), 4);
  EXPECT_EQ(For("third"), 2);
  EXPECT_EQ(Free(), 2);
  view_.PutPod(Pod("m1", "mine", "trainer", "n"));
  EXPECT_EQ(For("third"), 2);
  EXPECT_EQ(view_.UnitsOf(pool_, unit_).used, 1);
  view_.ErasePod({"ns", "m1"});
  EXPECT_EQ(For("third"), 2) << "for the pod that replaces it";
  view_.Release("uid-mine");
  EXPECT_EQ(For("third"), 4);
}

TEST_F(CapacityViewTest, WhatOthersHaveReservedIsRefused) {
  pool_.limit = 3;
  pool_.scaling = PoolScaling::kAutoscaled;
  EXPECT_TRUE(Reserve("mine", {"m1", "m2"}).ok());
  const absl::Status refused = Reserve("third", {"t1", "t2"});
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("bounded by spec.limit of pool a"), std::string::npos) << refused;
  EXPECT_EQ(For("third"), 1) << "nothing of a refused plan is reserved";
  EXPECT_TRUE(Reserve("third", {"t1"}).ok());
  EXPECT_TRUE(Reserve("mine", {"m2"}).ok()) << "another plan of the same job";
  EXPECT_TRUE(Reserve("third", {"t1", "t2"}).ok());
}

TEST_F(CapacityViewTest, ThePodsOfTwoPlansOfAJobExistTogether) {
  pool_.limit = 3;
  pool_.scaling = PoolScaling::kAutoscaled;
  EXPECT_TRUE(Reserve("mine", {"m1", "m2"}).ok());
  for (const char* pod : {"m1", "m2"}) view_.PutPod(Pod(pod, "mine", "trainer", "n"));
  EXPECT_TRUE(Reserve("mine", {"m3"}, {"m1", "m2"}).ok());
  EXPECT_EQ(Reserve("mine", {"m3", "m4"}, {"m1", "m2"}).code(), absl::StatusCode::kFailedPrecondition);
  view_.ErasePod({"ns", "m1"});
  EXPECT_EQ(For("third"), 0) << "the plan in force may create its pod again until the switch";
  EXPECT_TRUE(Reserve("mine", {"m3"}).ok());  // it is in force
  EXPECT_EQ(For("third"), 1);
}

TEST_F(CapacityViewTest, AProfilerHoldsAUnitOfItsPoolFromBeforeItsPodExists) {
  pool_.limit = 2;
  pool_.scaling = PoolScaling::kAutoscaled;
  EXPECT_TRUE(ReserveFor(Holder::kProfiler, "mine", "profiler", unit_).ok());
  EXPECT_EQ(For("third"), 1);
  EXPECT_EQ(For("mine"), 1) << "the job's plan cannot have the unit on which it is measured";
  EXPECT_EQ(Reserve("third", {"t1", "t2"}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Reserve("third", {"t1"}).ok());
  EXPECT_EQ(ReserveFor(Holder::kProfiler, "fourth", "profiler-4", unit_).code(), absl::StatusCode::kResourceExhausted);
  view_.PutPod(Pod("profiler", "mine", "profiler", ""));
  EXPECT_EQ(For("mine"), 0);
  EXPECT_EQ(view_.UnitsOf(pool_, unit_).used, 1);
  view_.TakeFreed();
  view_.ErasePod({"ns", "profiler"});
  view_.Release("profile of mine");
  EXPECT_TRUE(view_.TakeFreed());
  EXPECT_EQ(For("mine"), 1);
}

TEST_F(CapacityViewTest, AProfilerThatWaitsForANodeWillTakeOne) {
  view_.PutNode(Node("n", R"({"cpu": "4"})"));
  view_.PutPod(Pod("profiler", "mine", "profiler", ""));
  EXPECT_EQ(For("third"), 1);
  EXPECT_EQ(For("mine"), 1);
}

TEST_F(CapacityViewTest, ACoordinatorHoldsRoomOnANodeButNoUnit) {
  PodDemand coordinator;
  coordinator.amounts.requests = {{"cpu", 100}};
  view_.PutNode(Node("n", R"({"cpu": "4"})"));
  EXPECT_TRUE(ReserveFor(Holder::kCoordinator, "mine", "coordinator", coordinator).ok());
  EXPECT_EQ(For("third"), 1) << "3.9 CPUs are left";
  EXPECT_EQ(For("mine"), 1) << "the job's plan cannot have the room of its coordinator";
  EXPECT_EQ(view_.UnitsOf(pool_, unit_).free, 1);
  view_.PutPod(Pod("coordinator", "mine", "coordinator", "", "100m"));
  EXPECT_EQ(For("third"), 1);
  EXPECT_EQ(view_.UnitsOf(pool_, unit_).used, 0);
  view_.TakeFreed();
  view_.PutPod(Pod("coordinator", "mine", "coordinator", "elsewhere", "100m"));
  EXPECT_TRUE(view_.TakeFreed()) << "the room on n was a guess";
  EXPECT_EQ(For("third"), 2);
}

TEST_F(CapacityViewTest, PodsOfAllNamespacesHoldUnits) {
  pool_.scaling = PoolScaling::kAutoscaled;
  kube::Object elsewhere = Pod("t", "third", "trainer", "");
  elsewhere.mutable_json()["metadata"]["namespace"] = "else";
  view_.PutPod(elsewhere);
  view_.PutPod(Pod("c", "mine", "coordinator", "", "100m"));
  EXPECT_EQ(For("mine"), 9);
  EXPECT_EQ(view_.NamespacesOn("a"), std::set<std::string>{"else"});
}

TEST_F(CapacityViewTest, OnlyAQuotaRefusesACoordinator) {
  PodDemand coordinator;
  coordinator.amounts.requests = {{"cpu", 100}};
  EXPECT_TRUE(ReserveFor(Holder::kCoordinator, "mine", "c", coordinator).ok()) << "an autoscaler may bring a node";
  view_.PutQuota(kube::Object(Json::parse(R"({"metadata": {"name": "q", "namespace": "ns"},
      "status": {"hard": {"pods": "2"}, "used": {"pods": "1"}}})")));
  EXPECT_EQ(ReserveFor(Holder::kCoordinator, "third", "c3", coordinator).code(), absl::StatusCode::kResourceExhausted);
  pool_.scaling = PoolScaling::kAutoscaled;
  EXPECT_EQ(For("mine"), 0) << "the coordinator takes the last pod of the quota";
}

TEST_F(CapacityViewTest, UnitsOfAnotherZoneCannotBeKept) {
  pool_.limit = 4;
  pool_.scaling = PoolScaling::kAutoscaled;
  unit_.node_selector = {{"topology.kubernetes.io/zone", "z0"}};
  EXPECT_TRUE(Reserve("mine", {"m1", "m2", "m3"}).ok());
  for (const char* pod : {"m1", "m2", "m3"}) view_.PutPod(Pod(pod, "mine", "trainer", "n"));
  EXPECT_EQ(For("mine"), 4);
  unit_.node_selector = {{"topology.kubernetes.io/zone", "z1"}};
  EXPECT_EQ(For("mine"), 1);
}

TEST_F(CapacityViewTest, ReservedUnitsCountAgainstQuotas) {
  pool_.scaling = PoolScaling::kAutoscaled;
  view_.PutQuota(kube::Object(Json::parse(R"({"metadata": {"name": "q", "namespace": "ns"},
      "status": {"hard": {"requests.cpu": "9"}, "used": {"requests.cpu": "3"}}})")));
  EXPECT_TRUE(Reserve("mine", {"m1", "m2"}).ok());
  EXPECT_EQ(For("third"), 1);
  EXPECT_EQ(For("mine"), 3);
  EXPECT_EQ(Reserve("third", {"t1", "t2"}).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(CapacityViewTest, OnlyWhatFreesSomethingIsReported) {
  view_.PutNode(Node("n", R"({"cpu": "8"})"));
  view_.TakeFreed();
  EXPECT_TRUE(Reserve("mine", {"m1"}).ok());
  view_.PutPod(Pod("m1", "mine", "trainer", ""));
  view_.PutPod(Pod("m1", "mine", "trainer", "n"));
  EXPECT_FALSE(Reserve("third", {"t1", "t2", "t3", "t4"}).ok());
  EXPECT_TRUE(Reserve("mine", {"m1"}).ok());
  view_.ErasePod({"ns", "m1"});
  EXPECT_FALSE(view_.TakeFreed());
  view_.Release("uid-mine");
  EXPECT_TRUE(view_.TakeFreed());
  EXPECT_FALSE(view_.TakeFreed());
  view_.PutPod(Pod("x", "", "", "n"));
  EXPECT_FALSE(view_.TakeFreed());
  view_.ErasePod({"ns", "x"});
  EXPECT_TRUE(view_.TakeFreed());
}

TEST_F(CapacityViewTest, OnlyChangesThatMatterCount) {
  EXPECT_TRUE(view_.PutNode(Node("n", R"({"cpu": "8"})")));
  kube::Object heartbeat = Node("n", R"({"cpu": "8"})");
  heartbeat.mutable_json()["metadata"]["resourceVersion"] = "7";
  EXPECT_FALSE(view_.PutNode(heartbeat));
  EXPECT_TRUE(view_.PutPod(Pod("p", "j", "trainer", "n")));
  EXPECT_FALSE(view_.PutPod(Pod("p", "j", "trainer", "n")));
  kube::Object ended = Pod("p", "j", "trainer", "n");
  ended.mutable_json()["status"]["phase"] = "Failed";
  EXPECT_TRUE(view_.PutPod(ended));
  EXPECT_FALSE(view_.ErasePod({"ns", "p"}));
  EXPECT_EQ(Free(), 4);
}

}  // namespace
}  // namespace medley::ops
