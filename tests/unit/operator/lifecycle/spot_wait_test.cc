// A job with a deadline whose spot units are lost: it waits while there is time, and is not late.
#include <gmock/gmock.h>

#include <algorithm>

#include "common/base/testing/status_matchers.h"
#include "common/model/planning.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using testing::IsEmpty;

std::string PoolOfPlan(const FakeCluster& cluster) {
  std::set<std::string> pools;
  const PlanRecord plan = *cluster.stored_plan();
  for (const MemberSlot& slot : plan.slots) pools.insert(slot.pool);
  return pools.size() == 1 ? *pools.begin() : "several";
}

// Trains on spot units of pool a in zone z0; pool b has on-demand units at three times the price. 999 seconds are left.
FakeCluster OnSpot(const std::string& deadline) {
  FakeCluster cluster;
  cluster.pools["a"].zone_prices = {{"z0", 1}};
  cluster.pools["b"].price = 3;
  cluster.pools.erase("c");
  if (!deadline.empty()) cluster.SetSpec({{"objective", {{"deadline", deadline}}}});
  EXPECT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_EQ(PoolOfPlan(cluster), "a");
  return cluster;
}

// The zone has no node for one of the two pods any more.
void LoseOne(FakeCluster& cluster) {
  cluster.blocked_nodes = {"a-0", "a-1"};
  cluster.DeletePod("adult-0-a-1");
}

TEST(SpotWaitTest, AJobWithTimeToSpareWaitsForSpotUnits) {
  FakeCluster cluster = OnSpot("12h");
  LoseOne(cluster);
  cluster.PassFor(std::chrono::minutes(30));
  EXPECT_TRUE(cluster.HasEvent("ReplanConsidered", "MemberUnschedulable: stay (WaitsForSpot): ")) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("ReplanConsidered", "to spare; waiting for spot units is expected to cost"));
  EXPECT_EQ(PoolOfPlan(cluster), "a");
  cluster.blocked_nodes.clear();  // units come back
  cluster.PassFor(std::chrono::minutes(30));
  EXPECT_EQ(cluster.Reason(kPodsReadyCondition), "True/AllRunning") << cluster.trace();
  EXPECT_EQ(PoolOfPlan(cluster), "a");
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

TEST(SpotWaitTest, OnDemandUnitsAreTakenBeforeTheDeadlineIsAtRisk) {
  FakeCluster cluster = OnSpot("3h");
  LoseOne(cluster);
  cluster.PassFor(std::chrono::minutes(150));
  EXPECT_TRUE(cluster.HasEvent("ReplanConsidered", "stay (WaitsForSpot)")) << cluster.trace();
  EXPECT_EQ(PoolOfPlan(cluster), "b") << cluster.trace();
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

TEST(SpotWaitTest, WithoutADeadlineOrWithoutTimeTheJobMovesAtOnce) {
  for (const char* deadline : {"", "20m"}) {
    FakeCluster cluster = OnSpot(deadline);
    LoseOne(cluster);
    cluster.PassFor(std::chrono::minutes(10));
    EXPECT_FALSE(cluster.HasEvent("ReplanConsidered", "WaitsForSpot")) << cluster.trace();
    EXPECT_EQ(PoolOfPlan(cluster), "b") << deadline << cluster.trace();
  }
}

// Another pool that is as cheap as the spot units is no reason to wait.
TEST(SpotWaitTest, CheapOnDemandUnitsAreTakenAtOnce) {
  FakeCluster cluster;
  cluster.pools["a"].zone_prices = {{"z0", 1}};
  cluster.pools["b"].price = 1;
  cluster.pools.erase("c");
  cluster.SetSpec({{"objective", {{"deadline", "12h"}}}});
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  LoseOne(cluster);
  cluster.PassFor(std::chrono::minutes(10));
  EXPECT_EQ(PoolOfPlan(cluster), "b") << cluster.trace();
}

TEST(SpotWaitTest, AnOperatorThatRestartsWaitsTooAndIsNotLate) {
  FakeCluster cluster = OnSpot("3h");
  LoseOne(cluster);
  for (int i = 0; i < 15; ++i) {
    cluster.PassFor(std::chrono::minutes(10));
    cluster.RestartOperator();
  }
  EXPECT_TRUE(cluster.HasEvent("ReplanConsidered", "stay (WaitsForSpot)")) << cluster.trace();
  EXPECT_EQ(PoolOfPlan(cluster), "b") << cluster.trace();
}

// Units of a cost less and are lost ten times an hour, each time for three minutes.
TEST(SpotWaitTest, APoolWhoseUnitsAreLostOftenIsNotTheCheapest) {
  for (const bool lost_often : {false, true}) {
    FakeCluster cluster;
    cluster.pools["a"].zone_prices = {{"z0", 1}};
    cluster.pools["b"].price = 1.3;
    cluster.pools.erase("c");
    cluster.planner = [](model::PlanRequest request) {
      std::ranges::sort(request.resources, {}, &model::Resource::price_per_unit_hour);
      return FakeCluster::FirstPoolWithRoom(request);
    };
    cluster.pool_patches["a"] = {{"status",
                                  {{"interruptions",
                                    {{"unitHours", "100"},
                                     {"losses", lost_often ? "1240" : "0"},
                                     {"startSeconds", "180"},
                                     {"updated", "2026-01-01T00:00:00Z"}}}}}};
    ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
    EXPECT_EQ(PoolOfPlan(cluster), lost_often ? "b" : "a") << cluster.trace();
    EXPECT_NEAR(cluster.stored_plan()->plan.estimate.usd_per_hour, lost_often ? 2.6 : 2, 1e-9);
  }
}

}  // namespace
}  // namespace medley::ops::lifecycle
