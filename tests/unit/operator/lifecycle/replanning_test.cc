// Replanning: what asks for another plan, and whether the job moves.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct ReplanCase {
  const char* name;
  std::function<void(FakeCluster&)> happens;
  const char* considered;  // part of the Event ReplanConsidered; "": nothing is considered
  const char* pool;        // that the job runs on at the end
};

class ReplanTest : public testing::TestWithParam<ReplanCase> {};

TEST_P(ReplanTest, WhatAsksForAnotherPlan) {
  FakeCluster cluster;
  cluster.pools["a"].limit = 2;
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  GetParam().happens(cluster);
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  if (*GetParam().considered == '\0') {
    EXPECT_FALSE(cluster.HasEvent("ReplanConsidered")) << cluster.trace();
  } else {
    EXPECT_TRUE(cluster.HasEvent("ReplanConsidered", GetParam().considered)) << cluster.trace();
  }
  EXPECT_EQ(cluster.stored_plan()->plan.stages[0].groups[0].pool, GetParam().pool);
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "True/PlanFound");
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    All, ReplanTest,
    testing::Values(ReplanCase{"Nothing", [](FakeCluster&) {}, "", "a"},
                    ReplanCase{"CheaperElsewhereButThePlannerStays", [](FakeCluster& c) { c.pools["b"].price = 0.5; },
                               "PriceChanged: stay (SamePlan)", "a"},
                    ReplanCase{"PriceChangesAreIgnored",
                               [](FakeCluster& c) {
                                 c.SetSpec({{"elasticity", {{"replan", {{"onPriceChange", false}}}}}});
                                 c.Pass();  // the edit itself is considered
                                 c.pools["b"].price = 0.5;
                               },
                               "ObjectiveChanged: stay", "a"},
                    ReplanCase{"PoolUnusable", [](FakeCluster& c) { c.pools.erase("a"); },
                               "PoolUnusable: move (Forced)", "b"},
                    ReplanCase{"PriceAbsent", [](FakeCluster& c) { c.pools["a"].price.reset(); },
                               "PoolUnusable: move (Forced)", "b"},
                    ReplanCase{"LimitLowered", [](FakeCluster& c) { c.pools["a"].limit = 1; },
                               "CapacityLowered: move (Forced)", "b"},
                    ReplanCase{"LimitLoweredBriefly",
                               [](FakeCluster& c) {
                                 c.pools["a"].limit = 1;
                                 c.Pass();
                                 c.Advance(base::seconds(5));
                                 c.pools["a"].limit = 2;
                               },
                               "", "a"},
                    ReplanCase{"LimitRaised", [](FakeCluster& c) { c.pools["a"].limit = 4; },
                               "CapacityChanged: stay (SamePlan)", "a"},
                    ReplanCase{"ObjectiveEdited",
                               [](FakeCluster& c) {
                                 c.SetSpec({{"objective", {{"maxUsdPerHour", "9"}}}});
                               },
                               "ObjectiveChanged: stay (SamePlan)", "a"},
                    ReplanCase{"BelowGoalForLong",
                               [](FakeCluster& c) {
                                 c.SetSpec({{"objective", {{"minThroughput", 1000}}}});
                                 c.Settle();
                                 c.coordinator().throughput = 100;
                               },
                               "ThroughputBelowGoal: stay (SamePlan)", "a"}),
    [](const auto& each) { return each.param.name; });

TEST(ReplanningTest, AMemberThatCannotBeScheduledIsPlannedElsewhere) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.DeletePod("adult-0-a-1");
  cluster.Pass();
  const kube::Json waits = {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}};
  cluster.SetPodStatus("adult-0-a-1", {{"conditions", kube::Json::array({waits})}});
  EXPECT_LE(*cluster.Pass().requeue_after, cluster.options.schedule_window);
  cluster.Advance(cluster.options.schedule_window);
  cluster.Pass();
  EXPECT_TRUE(cluster.HasEvent("ReplanConsidered", "MemberUnschedulable: move (Forced)")) << cluster.trace();
  EXPECT_EQ(cluster.last_request().resources.front().limit, 1);  // the units of a that have a node
}

TEST(ReplanningTest, NoPlanForLoweredUnitsIsAskedForOnce) {
  FakeCluster cluster;
  cluster.pools.erase("b");
  cluster.pools.erase("c");
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  cluster.pools["a"].limit = 1;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.plans_asked(), 2);
  EXPECT_TRUE(cluster.HasEvent("ReplanInfeasible"));
  EXPECT_EQ(cluster.pods().size(), 3u);
}

TEST(ReplanningTest, AGoalThatIsReachedAsMeasuredIsNotRefusedByAPrediction) {
  FakeCluster cluster = FakeCluster::Training();
  const double measured = cluster.coordinator().throughput;
  ASSERT_GT(measured, 0);
  cluster.planner = [](const model::PlanRequest&) {
    model::PlanResult result;
    result.reasons.push_back({"minThroughput", "", 0, 0, "39854 samples/s is the most"});
    return AskForPlan::Outcome{std::move(result), false};
  };
  cluster.SetSpec({{"objective", {{"minThroughput", measured * 0.9}}}});
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("ReplanConsidered", "ObjectiveChanged: stay (GoalReached)")) << cluster.trace();
  EXPECT_FALSE(cluster.HasEvent("ReplanInfeasible")) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "True/PlanFound");
  cluster.SetSpec({{"objective", {{"minThroughput", measured * 1.1}}}});
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("ReplanInfeasible", "39854 samples/s is the most")) << cluster.trace();
}

TEST(ReplanningTest, WithoutElasticityNothingIsConsidered) {
  FakeCluster cluster;
  cluster.SetSpec({{"elasticity", {{"enabled", false}}}});
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  cluster.pools["a"].limit = 1;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.plans_asked(), 1);
}

TEST(ReplanningTest, WithoutElasticityAPlanThatCannotRunIsReplaced) {
  FakeCluster cluster;
  cluster.SetSpec({{"elasticity", {{"enabled", false}}}});
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  cluster.blocked_nodes = {"a-0", "a-1"};
  cluster.DeletePod("adult-0-a-0");
  cluster.DeletePod("adult-0-a-1");
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("ReplanConsidered", "MemberUnschedulable: move (Forced)")) << cluster.trace();
  EXPECT_EQ(cluster.stored_plan()->plan.stages[0].groups[0].pool, "b");
}

// A job that has just moved to pool b and then keeps its plan for an hour, unless it must not.
class CooldownTest : public testing::Test {
 protected:
  void SetUp() override {
    cluster_.SetSpec({{"elasticity", {{"replan", {{"cooldown", "1h"}}}}}});
    ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace();
    MakeCheapest("b", 0.1);
    ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
    ASSERT_EQ(Pool(), "b") << cluster_.trace();
  }
  void TearDown() override { EXPECT_THAT(cluster_.violations(), IsEmpty()); }
  // The planner takes that pool from now on.
  void MakeCheapest(const std::string& pool, double price) {
    cluster_.pools[pool].price = price;
    cluster_.planner = [pool](model::PlanRequest request) {
      std::erase_if(request.resources, [&](const model::Resource& each) { return each.name != pool; });
      return FakeCluster::FirstPoolWithRoom(request);
    };
  }
  std::string Pool() const { return cluster_.stored_plan()->plan.stages[0].groups[0].pool; }
  FakeCluster cluster_;
};

TEST_F(CooldownTest, IsAskedOnceAndAgainWhenItIsOver) {
  MakeCheapest("c", 0.01);
  const int asked = cluster_.plans_asked();
  cluster_.Pass();
  EXPECT_TRUE(cluster_.HasEvent("ReplanConsidered", "PriceChanged: stay (Cooldown)")) << cluster_.trace();
  const size_t events = cluster_.events().size();
  for (int i = 0; i < 20; ++i) {
    cluster_.Advance(base::seconds(2));
    cluster_.Pass();
  }
  EXPECT_EQ(cluster_.plans_asked(), asked + 1);
  EXPECT_EQ(cluster_.events().size(), events);
  cluster_.Advance(base::seconds(3600));
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(Pool(), "c");
}

TEST_F(CooldownTest, UnitsThatAppearMeanwhileAreAskedFor) {
  MakeCheapest("c", 0.01);
  cluster_.Pass();
  const int asked = cluster_.plans_asked();
  cluster_.pools["d"] = {};
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_GT(cluster_.plans_asked(), asked);
  EXPECT_TRUE(cluster_.HasEvent("ReplanConsidered", "CapacityChanged: stay (Cooldown)")) << cluster_.trace();
}

TEST_F(CooldownTest, AnotherLeaderDoesNotReplanWhatIgnoresPrices) {
  cluster_.SetSpec({{"elasticity", {{"replan", {{"onPriceChange", false}}}}}});
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  MakeCheapest("c", 0.01);
  const int asked = cluster_.plans_asked();
  cluster_.RestartOperator();
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.plans_asked(), asked);
  EXPECT_EQ(Pool(), "b");
}

TEST(ReplanningTest, AServiceThatIsUnavailableIsAskedAgain) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.planner = [](const model::PlanRequest&) { return AskForPlan::Outcome{base::Unavailable("down"), true}; };
  cluster.pools.erase("a");
  EXPECT_EQ(cluster.Pass().requeue_after, cluster.options.scheduler_retry);
  cluster.planner = nullptr;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.stored_plan()->plan.stages[0].groups[0].pool, "b");
}

// As when it has lost what it has learned, or no longer trusts it.
TEST(ReplanningTest, AServiceThatStopsToCorrectItsPredictionsCausesNoMove) {
  FakeCluster cluster;
  cluster.planner = [](const model::PlanRequest& request) {
    AskForPlan::Outcome outcome = FakeCluster::FirstPoolWithRoom(request);
    outcome.result->prediction = model::Prediction{9, 0.5, 1, 0.02, {{"a", 2, 1, 9}}};
    return outcome;
  };
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  ASSERT_EQ(cluster.coordinator().throughput, 1000) << "as the corrected profiles promise";
  cluster.pools["b"].price = 0.95;
  cluster.planner = [](model::PlanRequest request) {
    std::erase_if(request.resources, [](const model::Resource& each) { return each.name != "b"; });
    AskForPlan::Outcome outcome = FakeCluster::FirstPoolWithRoom(request);
    outcome.result->plan->throughput = outcome.result->execution_plan->estimate.throughput = 2000;
    return outcome;
  };
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("ReplanConsidered", "PriceChanged: stay (SavingTooSmall)")) << cluster.trace();
  EXPECT_EQ(cluster.stored_plan()->plan.stages[0].groups[0].pool, "a");
}

TEST(ReplanningTest, AZoneWithoutNodesIsAvoidedForLongerEachTime) {
  StuckZone zone;
  base::SteadyTime now(base::seconds(1000));
  const auto minutes = [&] {
    return std::chrono::duration_cast<std::chrono::minutes>(zone.avoided_until - now).count();
  };
  for (const int expected : {15, 30, 60, 120, 240, 240}) {
    AvoidZone(zone, now);
    EXPECT_EQ(minutes(), expected);
    AvoidZone(zone, now + base::seconds(1));
    EXPECT_EQ(minutes(), expected) << "the same pods";
    now = zone.avoided_until + std::chrono::minutes(1);
  }
  now += std::chrono::hours(8);
  AvoidZone(zone, now);
  EXPECT_EQ(minutes(), 15);
}

TEST(ReplanningTest, ASettledJobNeedsFewerPasses) {
  FakeCluster cluster = FakeCluster::Training();
  EXPECT_EQ(cluster.Pass().requeue_after, cluster.options.settled_recheck);
}

}  // namespace
}  // namespace medley::ops::lifecycle
