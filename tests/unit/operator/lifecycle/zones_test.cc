// Zones: which one a job runs in, when it moves to another, and what it does where a zone has no room.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using testing::IsEmpty;

// Pool a has a node, with room for the job, in each of the zones z0 and z1.
void GiveZones(FakeCluster& cluster, double z0, double z1) {
  cluster.pools["a"].zone_prices = {{"z0", z0}, {"z1", z1}};
}

// "a/z1" when all pods of the plan are planned on pool a in zone z1.
std::string PlaceOf(const FakeCluster& cluster) {
  std::set<std::string> places;
  const PlanRecord plan = *cluster.stored_plan();
  for (const MemberSlot& slot : plan.slots) places.insert(slot.pool + "/" + slot.zone);
  return places.size() == 1 ? *places.begin() : "in more than one place";
}

// Where every offering is unavailable, a running job keeps its units, and another job gets none and says why.
TEST(UnavailableTest, ARunningJobKeepsItsUnits) {
  FakeCluster cluster;
  GiveZones(cluster, 1, 1.2);
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  const std::set<std::string> pods = cluster.pod_names();
  cluster.pools["a"].unavailable_zones = {"z0", "z1"};
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(PlaceOf(cluster), "a/z0");
  EXPECT_EQ(cluster.pod_names(), pods);
  EXPECT_EQ(cluster.stored_plan()->plan.generation, 1);
}

TEST(UnavailableTest, AJobThatHoldsNoUnitsGetsNoneAndSaysWhy) {
  FakeCluster cluster;
  GiveZones(cluster, 1, 1.2);
  cluster.pools["a"].unavailable_zones = {"z0", "z1"};
  for (const char* other : {"b", "c"}) cluster.pools[other].limit = 0;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "False/Infeasible") << cluster.trace();
  EXPECT_THAT(cluster.Message(kPlannedCondition),
              testing::HasSubstr("no offering of the pool is available since noon"));
  ASSERT_EQ(cluster.last_request().resources.front().name, "a");
  EXPECT_EQ(cluster.last_request().resources.front().limit, 0);
  EXPECT_EQ(cluster.last_request().resources.front().price_per_unit_hour, 1);
  cluster.pools["a"].unavailable_zones.clear();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_EQ(PlaceOf(cluster), "a/z0");
}

struct ZoneCase {
  const char* name;
  std::function<void(FakeCluster&)> happens;
  const char* considered;  // part of the Event ReplanConsidered; "": nothing is considered
  const char* place;       // where the job runs at the end
};

class ZoneTest : public testing::TestWithParam<ZoneCase> {};

TEST_P(ZoneTest, WhereAJobThatRunsInZone0EndsUp) {
  FakeCluster cluster;
  GiveZones(cluster, 1, 1.2);
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  ASSERT_EQ(PlaceOf(cluster), "a/z0");
  GetParam().happens(cluster);
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  if (*GetParam().considered == '\0') {
    EXPECT_FALSE(cluster.HasEvent("ReplanConsidered")) << cluster.trace();
  } else {
    EXPECT_TRUE(cluster.HasEvent("ReplanConsidered", GetParam().considered)) << cluster.trace();
  }
  EXPECT_EQ(PlaceOf(cluster), GetParam().place) << cluster.trace();
  EXPECT_EQ(cluster.status().plan->stages[0].zone, cluster.stored_plan()->slots[0].zone);
  EXPECT_EQ(cluster.Reason(kPodsReadyCondition), "True/AllRunning");
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    All, ZoneTest,
    testing::Values(ZoneCase{"Nothing", [](FakeCluster&) {}, "", "a/z0"},
                    ZoneCase{"TheOtherZoneIsALittleCheaper", [](FakeCluster& c) { GiveZones(c, 1, 0.99); },
                             "PriceChanged: stay (CostsMoreThanItSaves)", "a/z0"},
                    ZoneCase{"TheOtherZoneIsMuchCheaper", [](FakeCluster& c) { GiveZones(c, 1, 0.1); },
                             "PriceChanged: move (Saves)", "a/z1"},
                    ZoneCase{"TheKeptZoneIsMuchMoreExpensive", [](FakeCluster& c) { GiveZones(c, 9, 1.2); },
                             "PriceChanged: move (Saves)", "a/z1"},
                    ZoneCase{"APriceChangedWhileTheOperatorWasAway",
                             [](FakeCluster& c) {
                               GiveZones(c, 1, 0.1);
                               c.RestartOperator();
                             },
                             "PriceChanged: move (Saves)", "a/z1"},
                    ZoneCase{"CheaperZonesAreIgnored",
                             [](FakeCluster& c) {
                               c.SetSpec({{"elasticity", {{"replan", {{"onPriceChange", false}}}}}});
                               c.Pass();  // the edit itself is considered
                               GiveZones(c, 1, 0.1);
                             },
                             "ObjectiveChanged: stay (SamePlan)", "a/z0"},
                    ZoneCase{"TheKeptZoneIsUnavailable",
                             [](FakeCluster& c) { c.pools["a"].unavailable_zones = {"z0"}; }, "PriceChanged: stay",
                             "a/z0"},
                    ZoneCase{"TheKeptZoneLeavesTheCatalog",
                             [](FakeCluster& c) { c.pools["a"].zone_prices.erase("z0"); }, "PriceChanged: stay",
                             "a/z0"},
                    ZoneCase{"EveryZoneIsUnavailable",
                             [](FakeCluster& c) {
                               c.pools["a"].unavailable_zones = {"z0", "z1"};
                             },
                             "", "a/z0"},
                    ZoneCase{"TheNodeOfTheZoneHasANotice", [](FakeCluster& c) { c.noticed_nodes = {"a-0"}; },
                             "SpotNotice: move (Forced)", "a/z1"},
                    ZoneCase{"PodsAreStuckInTheZone",
                             [](FakeCluster& c) {
                               c.blocked_nodes = {"a-0"};
                               c.DeletePod("adult-0-a-1");
                             },
                             "MemberUnschedulable: move (Forced)", "a/z1"},
                    ZoneCase{"PodsAreStuckInEveryZone",
                             [](FakeCluster& c) {
                               c.blocked_nodes = {"a-0", "a-1"};
                               c.DeletePod("adult-0-a-1");
                             },
                             "MemberUnschedulable: move (Forced)", "b/"},
                    ZoneCase{"TheZoneHasTooFewUnitsAndNoOtherPoolHas",
                             [](FakeCluster& c) {
                               c.pools.erase("b");
                               c.pools.erase("c");
                               c.node_units["a-0"] = 1;
                             },
                             "CapacityLowered: move (Forced)", "a/z1"}),
    [](const auto& each) { return each.param.name; });

TEST(ZonesTest, ACheaperZoneIsAskedAboutOnce) {
  FakeCluster cluster;
  GiveZones(cluster, 1, 1.2);
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  GiveZones(cluster, 1, 0.99);
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.plans_asked(), 3);  // the first plan, and one for each zone
}

TEST(ZonesTest, TheFirstPlanTriesZonesUntilOneGivesAPlan) {
  FakeCluster cluster;
  GiveZones(cluster, 1, 1.2);
  cluster.pools.erase("b");
  cluster.pools.erase("c");
  cluster.node_units["a-0"] = 1;
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_EQ(PlaceOf(cluster), "a/z1");
  EXPECT_EQ(cluster.stored_plan()->reason, Reason::kFirstPlan);
}

TEST(ZonesTest, AJobWithoutAPlanInAnyZoneStartsWhenOneHasRoom) {
  FakeCluster cluster;
  GiveZones(cluster, 1, 1.2);
  cluster.pools.erase("b");
  cluster.pools.erase("c");
  cluster.node_units = {{"a-0", 1}, {"a-1", 1}};
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "False/Infeasible");
  cluster.node_units.clear();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_EQ(PlaceOf(cluster), "a/z0");
}

TEST(ZonesTest, AnUnavailablePoolGivesNoMoreUnitsThanTheJobHolds) {
  FakeCluster cluster;
  GiveZones(cluster, 1, 1.2);
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  cluster.pools["a"].unavailable_zones = {"z0", "z1"};
  cluster.node_units["a-0"] = 4;
  cluster.SetSpec({{"objective", {{"maxUsdPerHour", "9"}}}});  // asks for another plan
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.last_request().resources.front().name, "a");
  EXPECT_EQ(cluster.last_request().resources.front().limit, 2);
  EXPECT_EQ(PlaceOf(cluster), "a/z0");
}

TEST(ZonesTest, PodsThatMoveWithinAZoneStayPinned) {
  FakeCluster cluster;
  GiveZones(cluster, 1, 1.2);
  cluster.node_units["a-0"] = 4;
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  cluster.TerminatePod("adult-0-a-0", base::seconds(30));
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(PlaceOf(cluster), "a/z0");
  for (const auto& [name, pod] : cluster.pods()) {
    if (pod.label("medley.dev/pool") != "a") continue;
    EXPECT_EQ(pod.String("/spec/nodeName"), "a-0") << name;
  }
}

}  // namespace
}  // namespace medley::ops::lifecycle
