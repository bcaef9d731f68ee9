// Plans that the coordinator gives up, because a member can never run them.
#include "operator/lifecycle/refusal.h"

#include <gmock/gmock.h>

#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using testing::IsEmpty;

class RefusalTest : public testing::Test {
 protected:
  void SetUp() override {
    cluster_.SetSpec({{"elasticity", {{"replan", {{"cooldown", "1s"}}}}}});
    cluster_.planner = [](const model::PlanRequest& request) {
      model::PlanRequest sorted = request;
      std::sort(sorted.resources.begin(), sorted.resources.end(),
                [](const auto& a, const auto& b) { return a.price_per_unit_hour < b.price_per_unit_hour; });
      return FakeCluster::FirstPoolWithRoom(sorted);
    };
    cluster_.pools["a"].price = 0.5;
    ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace();
    cluster_.broken_pools = {"b"};
    cluster_.pools["b"].price = 0.01;
  }
  void TearDown() override { EXPECT_THAT(cluster_.violations(), IsEmpty()); }
  size_t Refusals() const {
    return static_cast<size_t>(
        std::count_if(cluster_.events().begin(), cluster_.events().end(),
                      [](const std::string& event) { return event.starts_with("PlanRefused"); }));
  }
  FakeCluster cluster_;
};

TEST_F(RefusalTest, TheJobGoesBackToThePlanInForceAndRetriesWithBackoff) {
  const std::set<std::string> pods = cluster_.pod_names();
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_TRUE(cluster_.HasEvent("PlanRefused", "of pool b reports: no such file.")) << cluster_.trace();
  EXPECT_EQ(cluster_.pod_names(), pods);
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted");
  EXPECT_EQ(cluster_.Reason(kPlannedCondition), "True/PlanFound");
  EXPECT_EQ(cluster_.stored_plan()->plan.stages.front().groups.front().pool, "a");
  EXPECT_EQ(cluster_.status().restarts, 0);
  const size_t before = Refusals();
  EXPECT_LE(before, 3u);  // after 10, 20 and 40 minutes
  cluster_.Advance(std::chrono::hours(1));
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(Refusals(), before + 1) << cluster_.trace();
}

TEST_F(RefusalTest, TheMoveIsMadeOnceThePoolIsMended) {
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  cluster_.broken_pools.clear();
  cluster_.Advance(std::chrono::hours(6));
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.stored_plan()->plan.stages.front().groups.front().pool, "b") << cluster_.trace();
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted");
}

// The coordinator recovers the plan in force into a generation whose number is larger than that of the refused plan.
TEST_F(RefusalTest, ARecoveryIsNotTakenForTheRefusedPlan) {
  const std::set<std::string> pods = cluster_.pod_names();
  cluster_.Pass();  // accepts the plan on b
  ASSERT_EQ(cluster_.stored_plan()->plan.generation, 2);
  for (int i = 0; i < 20 && !cluster_.coordinator().refused; ++i) {
    cluster_.Pass();
    cluster_.StepCluster();
    if (cluster_.coordinator().refused) cluster_.RestartOperator();
  }
  ASSERT_TRUE(cluster_.coordinator().refused) << cluster_.trace();
  cluster_.coordinator().generation = 3;
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.pod_names(), pods) << cluster_.trace();
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted");
}

TEST_F(RefusalTest, AnOperatorThatStartsFindsTheWayBack) {
  cluster_.Pass();  // accepts the plan on b
  ASSERT_EQ(cluster_.stored_plan()->plan.generation, 2);
  for (int i = 0; i < 4; ++i) {
    cluster_.StepCluster();
    cluster_.RestartOperator();
    cluster_.Pass();
    cluster_.Advance(base::seconds(1));
  }
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.stored_plan()->plan.stages.front().groups.front().pool, "a") << cluster_.trace();
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted");
}

}  // namespace
}  // namespace medley::ops::lifecycle
