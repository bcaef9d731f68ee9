// Succession: another coordinator takes over from one that is lost or will be, and the members stay.
#include <gmock/gmock.h>

#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using kube::Json;
using testing::Contains;
using testing::IsEmpty;
using testing::Not;

constexpr char kFirst[] = "adult-coordinator";
constexpr char kSecond[] = "adult-coordinator-2";

class SuccessionTest : public testing::Test {
 protected:
  void SetUp() override {
    cluster_.SetSpec(
        {{"checkpoint",
          {{"volume", {{"mountPath", "/checkpoints"}, {"persistentVolumeClaim", {{"claimName", "c"}}}}}}}});
    ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace();
    member_ = UidOf("adult-0-a-0");
  }
  void TearDown() override { EXPECT_THAT(cluster_.violations(), IsEmpty()); }
  std::string UidOf(const std::string& pod) const {
    return cluster_.pods().contains(pod) ? kube::Object(cluster_.pods().at(pod)).uid() : "";
  }
  void ExpectMoved(int restarts, const char* leader) {
    ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
    EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted") << cluster_.trace();
    EXPECT_EQ(UidOf("adult-0-a-0"), member_) << "members keep their state\n" << cluster_.trace();
    EXPECT_EQ(cluster_.status().restarts, restarts);
    EXPECT_EQ(cluster_.status().counted_restarts, 0);
    EXPECT_EQ(cluster_.stored_plan()->CoordinatorPodName("adult"), leader);
    EXPECT_EQ(cluster_.stored_plan()->successor_term, 0);
    EXPECT_EQ(cluster_.stored_plan()->plan.generation, 1);
    EXPECT_TRUE(cluster_.pods().contains(leader));
  }
  FakeCluster cluster_;
  std::string member_;
};

TEST_F(SuccessionTest, ACoordinatorLeavesANodeThatWillBeLost) {
  cluster_.noticed_nodes = {"control-0"};
  EXPECT_THAT(cluster_.Pass().actions,
              testing::ElementsAre("save plan", "create pods adult-coordinator-2", "patch status"));
  EXPECT_TRUE(cluster_.HasEvent("SpotNotice", "the coordinator leaves node control-0")) << cluster_.trace();
  ExpectMoved(0, kSecond);
  EXPECT_FALSE(cluster_.pods().contains(kFirst)) << "the former one is deleted";
  EXPECT_TRUE(cluster_.HasEvent("CoordinatorMoved"));
}

TEST_F(SuccessionTest, TheFormerOneLeadsUntilItHasHandedOver) {
  cluster_.noticed_nodes = {"control-0"};
  cluster_.Pass();
  for (int i = 0; i < 5; ++i) cluster_.Pass();  // the new pod is not running yet
  EXPECT_EQ(cluster_.stored_plan()->CoordinatorPodName("adult"), kFirst);
  EXPECT_THAT(cluster_.Pass().actions, Not(Contains("create pods adult-coordinator-3")));
  ExpectMoved(0, kSecond);
}

// A drain: the pod ends and is deleted before the operator sees its exit code.
TEST_F(SuccessionTest, AFormerOneThatIsDeletedAtOnceIsNoRestart) {
  cluster_.noticed_nodes = {"control-0"};
  cluster_.Pass();
  cluster_.DeletePod(kFirst);
  cluster_.StepCluster();
  ExpectMoved(0, kSecond);
  EXPECT_TRUE(cluster_.HasEvent("CoordinatorMoved", "has left")) << cluster_.trace();
}

TEST_F(SuccessionTest, AnotherOperatorContinuesTheMove) {
  cluster_.noticed_nodes = {"control-0"};
  cluster_.Pass();
  cluster_.RestartOperator();
  ExpectMoved(0, kSecond);
}

TEST_F(SuccessionTest, ADeletedCoordinatorIsReplacedUnderItsName) {
  cluster_.DeletePod(kFirst);
  cluster_.StepCluster();
  ExpectMoved(1, kFirst);
  EXPECT_EQ(cluster_.stored_plan()->coordinator_term, 2);
}

TEST_F(SuccessionTest, ADeadNodeDoesNotHoldTheJob) {
  cluster_.nodes_not_ready = {"control-0"};
  EXPECT_THAT(cluster_.Pass().actions, IsEmpty());  // perhaps it comes back
  cluster_.Advance(cluster_.options.schedule_window);
  ExpectMoved(1, kSecond);
}

// The node's controller has deleted the pod, and no kubelet confirms it.
TEST_F(SuccessionTest, APodThatTerminatesWithoutEndDoesNotHoldTheJob) {
  cluster_.nodes_not_ready = {"control-0"};
  cluster_.TerminatePod(kFirst, base::seconds(30));
  cluster_.hung_pods = {kFirst};
  cluster_.Pass();
  cluster_.Advance(base::seconds(61));
  ExpectMoved(1, kSecond);
  EXPECT_TRUE(cluster_.pods().contains(kFirst)) << "it cannot be deleted";
}

TEST(SuccessionWithoutCheckpointsTest, ADeadNodeRestartsTheJobUnderAnotherName) {
  FakeCluster cluster;
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  cluster.nodes_not_ready = {"control-0"};
  cluster.TerminatePod(kFirst, base::seconds(30));
  cluster.hung_pods = {kFirst};
  cluster.Pass();
  cluster.Advance(base::seconds(61));
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kRunningCondition), "True/GenerationCommitted") << cluster.trace();
  EXPECT_EQ(cluster.status().restarts, 1);
  EXPECT_EQ(cluster.status().counted_restarts, 0);
  EXPECT_EQ(cluster.stored_plan()->CoordinatorPodName("adult"), kSecond);
}

}  // namespace
}  // namespace medley::ops::lifecycle
