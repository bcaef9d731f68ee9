// Pods that find no node although their units count as free.
#include <gmock/gmock.h>

#include <optional>

#include "common/base/status.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// The job has a plan on pool a, whose nodes take no pods from now on; no other pool has units.
void PlanOnBlockedNodes(FakeCluster& cluster) {
  for (const char* other : {"b", "c"}) cluster.pools[other].limit = 0;
  for (int i = 0; i < 20 && cluster.plans_asked() == 0; ++i) cluster.PassFor(base::seconds(1));
  for (const char* node : {"a-0", "a-1"}) cluster.blocked_nodes.insert(node);
}

TEST(PlacementTest, APlanThatHasNeverRunIsReleasedWithAllItsPods) {
  FakeCluster cluster;
  PlanOnBlockedNodes(cluster);
  cluster.PassFor(base::seconds(40));
  EXPECT_EQ(cluster.reserved().size(), 2u);
  cluster.PassFor(base::seconds(60));
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "False/Unschedulable") << cluster.trace();
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("Pod adult-0-a-0 has found no node for 60 s"));
  EXPECT_THAT(cluster.pod_names(), IsEmpty());
  EXPECT_THAT(cluster.reserved(), IsEmpty());
  EXPECT_FALSE(cluster.in_line());
  EXPECT_FALSE(cluster.stored_plan().has_value());
  // It is tried again, after pauses that grow: 1, 2, 4, ... minutes, and a minute for each plan.
  const int asked = cluster.plans_asked();
  cluster.PassFor(std::chrono::minutes(30), base::seconds(5));
  EXPECT_GE(cluster.plans_asked(), asked + 3);
  EXPECT_LE(cluster.plans_asked(), asked + 12);
  cluster.blocked_nodes.clear();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

TEST(PlacementTest, AnEditOfTheSpecEndsThePause) {
  FakeCluster cluster;
  PlanOnBlockedNodes(cluster);
  for (int i = 0; i < 200 && cluster.Reason(kPlannedCondition) != "False/Unschedulable"; ++i) {
    cluster.PassFor(base::seconds(1));
  }
  ASSERT_EQ(cluster.Reason(kPlannedCondition), "False/Unschedulable") << cluster.trace();
  cluster.blocked_nodes.clear();
  const int asked = cluster.plans_asked();
  cluster.Pass();
  EXPECT_EQ(cluster.plans_asked(), asked);
  cluster.SetSpec({{"objective", {{"maxUsdPerHour", "50"}}}});
  cluster.Pass();
  EXPECT_EQ(cluster.plans_asked(), asked + 1);
}

TEST(PlacementTest, ACoordinatorThatAQuotaRefusesHoldsNoUnitsForLongAndIsTriedWhenTheQuotaChanges) {
  FakeCluster cluster;
  cluster.failures["create pods adult-coordinator"] = base::PermissionDenied("exceeded quota: q, requested: pods=1");
  cluster.PassFor(std::chrono::hours(1));
  ASSERT_EQ(cluster.Reason(kPlannedCondition), "False/Unschedulable") << cluster.trace();
  EXPECT_THAT(cluster.Message(kPlannedCondition),
              HasSubstr("Pod adult-coordinator has not been admitted for 60 s (exceeded quota: q, requested: pods=1)"));
  EXPECT_THAT(cluster.reserved(), IsEmpty());
  cluster.failures.clear();
  const int asked = cluster.plans_asked();
  cluster.PassFor(base::seconds(20));
  EXPECT_EQ(cluster.plans_asked(), asked) << "the pauses have grown";
  ++cluster.quota_changes;
  cluster.PassFor(base::seconds(5));
  EXPECT_TRUE(cluster.pod_names().contains("adult-coordinator")) << cluster.trace();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
}

TEST(PlacementTest, AMemberThatAdmissionRefusesHoldsNoUnitsForLong) {
  FakeCluster cluster;
  for (const char* other : {"b", "c"}) cluster.pools[other].limit = 0;
  cluster.failures["create pods adult-0"] = base::PermissionDenied("admission webhook \"policy\" denied the request");
  for (int i = 0; i < 120 && cluster.Reason(kPlannedCondition) != "False/Unschedulable"; ++i) {
    cluster.PassFor(base::seconds(1));
  }
  ASSERT_EQ(cluster.Reason(kPlannedCondition), "False/Unschedulable") << cluster.trace();
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("denied the request), and no plan exists without it"));
  EXPECT_TRUE(cluster.HasEvent("FailedCreatePod", "denied the request"));
  EXPECT_THAT(cluster.reserved(), IsEmpty());
  EXPECT_THAT(cluster.outages("a"), IsEmpty());
  cluster.failures.clear();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
}

TEST(PlacementTest, AnAutoscaledPoolGetsTheTimeThatItsNodesNeed) {
  FakeCluster cluster;
  cluster.pools["a"].provision_timeout = "10m";
  PlanOnBlockedNodes(cluster);
  cluster.PassFor(std::chrono::minutes(9));
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "True/PlanFound") << cluster.trace();
  EXPECT_EQ(cluster.plans_asked(), 1);
  EXPECT_EQ(cluster.reserved().size(), 2u);
  cluster.blocked_nodes.clear();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_EQ(cluster.plans_asked(), 1);
}

// Pool a is autoscaled and brings no nodes; other pools have no units.
void WaitForOutage(FakeCluster& cluster) {
  cluster.pools["a"].provision_timeout = "2m";
  PlanOnBlockedNodes(cluster);
  for (int i = 0; i < 200 && cluster.outages("a").empty(); ++i) cluster.PassFor(base::seconds(1));
  ASSERT_EQ(cluster.outages("a").size(), 1u) << cluster.trace();
}

TEST(OutageTest, WithoutANodeInTimeAPoolIsUnavailableForAWhile) {
  FakeCluster cluster;
  WaitForOutage(cluster);
  const PoolOutage outage = cluster.outages("a").front();
  EXPECT_EQ(outage.failures, 1);
  EXPECT_EQ(outage.until - outage.since, std::chrono::minutes(5));
  cluster.PassFor(std::chrono::minutes(3));
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "False/Infeasible") << cluster.trace();
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("because no node came for its pods"));
  EXPECT_THAT(cluster.pod_names(), IsEmpty());
  EXPECT_EQ(cluster.last_request().resources.front().limit, 0);
}

// What a template asks for beyond the unit concerns its job alone: the pool stays open to the others.
TEST(OutageTest, APodThatAsksForMoreThanTheUnitClosesNoPool) {
  for (const char* spec : {R"({"nodeSelector": {"a": "none-has-it"}})", R"({"schedulerName": "nobody"})",
                           R"({"containers": [{"resources": {"requests": {"example.com/fpga": "1"}}}]})"}) {
    FakeCluster cluster;
    cluster.pools["a"].provision_timeout = "2m";
    cluster.SetSpec({{"template", {{"spec", kube::Json::parse(spec)}}}});
    PlanOnBlockedNodes(cluster);
    cluster.PassFor(std::chrono::minutes(10));
    EXPECT_THAT(cluster.outages("a"), IsEmpty()) << spec;
    EXPECT_TRUE(cluster.HasEvent("Unschedulable")) << "the job itself gives way " << cluster.trace();
  }
}

TEST(OutageTest, EachFailureInARowDoublesItAlsoAfterARestartOfTheOperator) {
  FakeCluster cluster;
  WaitForOutage(cluster);
  cluster.RestartOperator();
  EXPECT_EQ(cluster.outages("a").front().failures, 1);
  for (int i = 0; i < 1200 && cluster.outages("a").front().failures == 1; ++i) cluster.PassFor(base::seconds(1));
  const PoolOutage second = cluster.outages("a").front();
  EXPECT_EQ(second.failures, 2);
  const PoolOutage first = AfterFailure(std::nullopt, "", 0, second.since);
  EXPECT_EQ(first.until - first.since, std::chrono::minutes(5));
  EXPECT_GT(second.until - second.since, std::chrono::minutes(15));
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

TEST(OutageTest, ItEndsWhenAPodOfThePoolGetsANode) {
  FakeCluster cluster;
  WaitForOutage(cluster);
  cluster.blocked_nodes.clear();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();  // after the outage
  EXPECT_THAT(cluster.outages("a"), IsEmpty());
}

TEST(OutageTest, AJobThatTrainsKeepsItsUnitsAndTakesNoMore) {
  FakeCluster cluster;
  for (const char* other : {"b", "c"}) cluster.pools[other].limit = 0;
  cluster.pools["a"].provision_timeout = "2m";
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  const std::set<std::string> pods = cluster.pod_names();
  cluster.FailOnPool("a");  // of another job
  cluster.SetSpec({{"objective", {{"minThroughput", 1}}}});
  cluster.PassFor(base::seconds(30));
  EXPECT_EQ(cluster.last_request().resources.front().limit, 2) << "what the job holds";
  EXPECT_EQ(cluster.pod_names(), pods);
  EXPECT_EQ(cluster.stored_plan()->plan.generation, 1);
  cluster.PassFor(std::chrono::minutes(10));
  EXPECT_EQ(cluster.last_request().resources.front().limit, 4) << "the pool counts as grown after the outage";
  EXPECT_EQ(cluster.pod_names(), pods);
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

TEST(OutageTest, AnEditOfThePoolEndsIt) {
  FakeCluster cluster;
  WaitForOutage(cluster);
  cluster.pool_patches["a"] = {{"metadata", {{"generation", 2}}}};
  cluster.blocked_nodes.clear();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
}

TEST(PlacementTest, AJobThatTrainsGoesBackToItsPlan) {
  FakeCluster cluster = FakeCluster::Training();
  for (const char* node : {"b-0", "b-1"}) cluster.blocked_nodes.insert(node);
  cluster.pools["c"].limit = 0;
  // Pool b is cheaper by far; without b no plan is found.
  cluster.pools["a"].price = 100;
  cluster.planner = [](const model::PlanRequest& request) {
    model::PlanRequest others = request;
    std::erase_if(others.resources, [](const model::Resource& resource) { return resource.name == "a"; });
    return FakeCluster::FirstPoolWithRoom(others);
  };
  cluster.PassFor(base::seconds(20));
  ASSERT_TRUE(cluster.pod_names().contains("adult-0-b-0")) << cluster.trace();
  cluster.PassFor(base::seconds(120));
  EXPECT_TRUE(cluster.HasEvent("PlanRefused", "pod adult-0-b-0 of pool b finds no node")) << cluster.trace();
  EXPECT_FALSE(cluster.pod_names().contains("adult-0-b-0"));
  EXPECT_EQ(cluster.reserved(), (std::set<std::string>{"adult-0-a-0", "adult-0-a-1"}));
  EXPECT_EQ(cluster.Reason(kRunningCondition), "True/GenerationCommitted");
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

TEST(PlacementTest, ACoordinatorThatFindsNoNodeHoldsNoUnits) {
  FakeCluster cluster;
  cluster.coordinator_has_node = false;
  cluster.PassFor(base::seconds(100));
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "False/Unschedulable") << cluster.trace();
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("Pod adult-coordinator has found no node"));
  EXPECT_THAT(cluster.reserved(), IsEmpty());
  EXPECT_THAT(cluster.pod_names(), IsEmpty());
  cluster.coordinator_has_node = true;
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
}

}  // namespace
}  // namespace medley::ops::lifecycle
