// A pool whose offering names no zone, and a feed that prices zones: the cheapest available zone is chosen, reported,
// pinned, and kept until a move pays.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "operator/api/pool_status.h"
#include "operator/api/pool_zones.h"
#include "operator/api/resources.h"
#include "tests/integration/operator/harness.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class ZonesTest : public OperatorHarness {
 protected:
  void LabelNodes() {
    for (const char* zone : {"a", "b"}) {
      const std::string name = std::string("node-") + zone;
      AddNode(name, {{"cpu", "64"}, {"example.com/gpu", "4"}, {"pods", "200"}});
      PatchNode(name, {{"metadata", {{"labels", {{kZoneLabel, zone}}}}}});
    }
  }
  PoolStatus GpuStatus() { return PoolStatus::FromJson(Get(ResourcePools(), {"", "gpu"}).At("/status")); }
  // The zone that required node affinity pins the pod to; empty: none.
  std::string PinOf(const std::string& pod) {
    const kube::Object object = Get(kube::resources::Pods(), {ns_, pod});
    const Json& expression = object.At(
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/"
        "matchExpressions/0");
    if (!expression.is_object()) return "";
    EXPECT_EQ(expression["key"], "topology.kubernetes.io/zone");
    EXPECT_EQ(expression["operator"], "In");
    EXPECT_EQ(expression["values"].size(), 1u);
    return expression["values"][0].get<std::string>();
  }
  // Runs the job in zone a.
  void RunInZoneA() {
    LabelNodes();
    scheduler_.PublishZones({{"a", 0.5}, {"b", 0.6}});
    StartOperator();
    RunJob();
    ASSERT_EQ(PinOf("adult-1-gpu-0"), "a");
  }
};

INSTANTIATE_TEST_SUITE_P(On, ZonesTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);

TEST_P(ZonesTest, TheCheapestZoneIsReportedAndPinned) {
  LabelNodes();
  scheduler_.PublishZones({{"a", 0.6}, {"b", 0.5}, {"c", 0.1}});  // the pool has no nodes in zone c
  StartOperator();
  RunJob();
  EXPECT_TRUE(Eventually([&] { return GpuStatus().zone == "b"; }, "the zone in the pool's status"));
  const PoolStatus pool = GpuStatus();
  EXPECT_EQ(pool.usd_per_unit_hour, 0.5);
  const Condition* priced = pool.conditions.Find(kPricedCondition);
  ASSERT_NE(priced, nullptr);
  EXPECT_EQ(priced->reason, "CatalogPrice");
  EXPECT_THAT(priced->message, HasSubstr("in zone b"));
  EXPECT_EQ(PinOf("adult-1-gpu-0"), "b");
  EXPECT_EQ(PinOf("adult-0-cpu-0"), "") << "a pool with a fixed price pins nothing";
  EXPECT_EQ(scheduler_.last().resources.size(), 2u);
  for (const model::Resource& resource : scheduler_.last().resources) {
    if (resource.name != "gpu") continue;
    EXPECT_EQ(resource.price_per_unit_hour, 0.5);
    EXPECT_EQ(resource.offering->zone, "b");
  }
  const JobStatus status = Status();
  ASSERT_TRUE(status.plan.has_value());
  ASSERT_EQ(status.plan->stages.size(), 2u);
  EXPECT_EQ(status.plan->stages[0].zone, "");
  EXPECT_EQ(status.plan->stages[1].zone, "b");
}

// As on the process node of `medley run`: nodes without the label. A pinned pod would find no node there.
TEST_P(ZonesTest, NodesWithoutZonesGetPodsThatAreNotPinned) {
  scheduler_.PublishZones({{"a", 0.6}, {"b", 0.5}});
  StartOperator();
  RunJob();
  EXPECT_EQ(PinOf("adult-1-gpu-0"), "");
  EXPECT_TRUE(Eventually([&] { return GpuStatus().zone == "b"; }, "the zone of the price"));
  EXPECT_EQ(GpuStatus().usd_per_unit_hour, 0.5);
}

TEST_P(ZonesTest, ACheaperZoneIsTakenWhenTheMovePays) {
  RunInZoneA();
  scheduler_.PublishZones({{"a", 0.5}, {"b", 0.1}});
  ASSERT_TRUE(Eventually([&] { return coordinator_.applied().size() == 2; }, "the plan in zone b is applied"));
  EXPECT_EQ(coordinator_.applied().back(), (std::pair<int64_t, std::string>{2, "PriceChanged"}));
  ASSERT_TRUE(Eventually([&] { return PodNames().contains("adult-1-gpu-1"); }, "a pod in zone b"));
  EXPECT_EQ(PinOf("adult-1-gpu-1"), "b");
  EXPECT_TRUE(Eventually([&] { return !PodNames().contains("adult-1-gpu-0"); }, "the pod in zone a is deleted"));
  EXPECT_TRUE(Eventually([&] { return HasEvent("ReplanConsidered", "PriceChanged: move (Saves)"); }, "event"));
  EXPECT_THAT(PodNames(), Contains("adult-0-cpu-0")) << "pods of other pools stay";
  EXPECT_EQ(Status().restarts, 0);
}

TEST_P(ZonesTest, AZoneThatIsALittleCheaperIsConsideredAndNotTaken) {
  RunInZoneA();
  scheduler_.PublishZones({{"a", 0.5}, {"b", 0.49}});
  EXPECT_TRUE(Eventually([&] { return HasEvent("ReplanConsidered", "PriceChanged: stay (SavingTooSmall)"); }, "event"));
  EXPECT_TRUE(Eventually([&] { return GpuStatus().zone == "b"; }, "the pool names the cheapest zone"));
  const int asked = scheduler_.plans();
  Settle();
  EXPECT_EQ(scheduler_.plans(), asked) << "the same prices are considered once";
  EXPECT_EQ(coordinator_.applied().size(), 1u);
  EXPECT_EQ(PinOf("adult-1-gpu-0"), "a");
  EXPECT_EQ(Status().plan->stages[1].zone, "a");
}

TEST_P(ZonesTest, AZoneThatLeavesTheCatalogIsNotLeftAtALoss) {
  RunInZoneA();
  const int asked = scheduler_.plans();
  scheduler_.PublishZones({{"b", 0.6}});
  EXPECT_TRUE(Eventually([&] { return scheduler_.plans() > asked; }, "the job is planned with zone b"));
  EXPECT_TRUE(Eventually([&] { return HasEvent("ReplanConsidered", "PriceChanged: stay"); }, "event"));
  Settle();
  EXPECT_EQ(coordinator_.applied().size(), 1u);
  EXPECT_THAT(PodNames(), Contains("adult-1-gpu-0"));
  EXPECT_THAT(PodNames(), Not(Contains("adult-1-gpu-1")));
}

}  // namespace
}  // namespace medley::ops
