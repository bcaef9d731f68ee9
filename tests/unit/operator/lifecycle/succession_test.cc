// Succession: another coordinator takes over from one that is lost or will be, and the members stay.
#include <gmock/gmock.h>

#include "operator/api/worker_state.h"
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
    return cluster_.pods().contains(pod) ? cluster_.pods().at(pod).uid() : "";
  }
  // The second coordinator runs and has the job; no pass has seen it.
  void StepUntilHandedOver() {
    const auto handed_over = [&] { return ExitCode(cluster_.pods().at(kFirst), "lastState") == kSuperseded; };
    for (int i = 0; i < 10 && !handed_over(); ++i) cluster_.StepCluster();
    ASSERT_TRUE(handed_over()) << cluster_.trace();
  }
  static Json EndedInPlace(int code, int restarts) {
    return {{"containerStatuses", Json::array({{{"name", "worker"},
                                                {"restartCount", restarts},
                                                {"state", {{"running", Json::object()}}},
                                                {"lastState", {{"terminated", {{"exitCode", code}}}}}}})}};
  }
  void ExpectSuspendedWithACheckpoint() {
    cluster_.SetSpec({{"runPolicy", {{"suspend", true}}}});
    ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
    EXPECT_EQ(cluster_.Reason(kSuspendedCondition), "True/Suspended") << cluster_.trace();
    EXPECT_EQ(cluster_.Message(kSuspendedCondition), "checkpoint at step 42") << cluster_.trace();
    EXPECT_THAT(cluster_.pod_names(), IsEmpty());
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
TEST_F(SuccessionTest, AFormerCoordinatorDeletedAtOnceIsNotARestart) {
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

// The successor has claimed the job, and its pod object is removed while its process may still run.
TEST_F(SuccessionTest, ASuccessorThatIsGoneIsNotCreatedAgain) {
  cluster_.noticed_nodes = {"control-0"};
  cluster_.Pass();
  StepUntilHandedOver();
  cluster_.DeletePod(kSecond);
  ExpectMoved(1, "adult-coordinator-3");
  EXPECT_EQ(cluster_.stored_plan()->coordinator_term, 3);
}

TEST_F(SuccessionTest, ASuccessorThatTerminatesIsNotPromoted) {
  cluster_.noticed_nodes = {"control-0"};
  cluster_.Pass();
  StepUntilHandedOver();
  cluster_.TerminatePod(kSecond, base::seconds(30));
  ExpectMoved(1, "adult-coordinator-3");
}

TEST_F(SuccessionTest, ASuccessorThatIsLostBeforeItLeadsGetsANewTerm) {
  cluster_.noticed_nodes = {"control-0"};
  cluster_.Pass();
  cluster_.DeletePod(kSecond);
  EXPECT_THAT(cluster_.Pass().actions, Contains("create pods adult-coordinator-3"));
  ExpectMoved(0, "adult-coordinator-3");
}

// An admission plugin said no, so no pod of the term exists.
TEST_F(SuccessionTest, ASuccessorThatIsRefusedKeepsItsTerm) {
  cluster_.noticed_nodes = {"control-0"};
  cluster_.failures["create pods"] = absl::PermissionDeniedError("exceeded quota: q, requested: pods=1");
  cluster_.Pass();
  cluster_.failures.clear();
  ExpectMoved(0, kSecond);
}

// The answer was lost, so the pod may exist.
TEST_F(SuccessionTest, ASuccessorThatMayExistIsNotCreatedAgain) {
  cluster_.noticed_nodes = {"control-0"};
  cluster_.failures["create pods"] = absl::UnavailableError("connection reset");
  cluster_.Pass();
  cluster_.failures.clear();
  ExpectMoved(0, "adult-coordinator-3");
}

// The claims name a larger term than the operator remembers.
TEST_F(SuccessionTest, ACoordinatorThatFindsALargerTermIsNotTheJobsFault) {
  cluster_.SetPodStatus(kFirst, EndedInPlace(3, 1));
  ExpectMoved(1, kSecond);
}

TEST_F(SuccessionTest, RestartsBeforeTheMoveAreNotTheJobsFault) {
  cluster_.noticed_nodes = {"control-0"};
  cluster_.Pass();
  StepUntilHandedOver();
  cluster_.SetPodStatus(kSecond, EndedInPlace(1, 2));
  ExpectMoved(0, kSecond);
}

TEST_F(SuccessionTest, TheNumberOutlivesThePlan) {
  cluster_.noticed_nodes = {"control-0"};
  cluster_.failures["patch status"] = absl::UnavailableError("connection reset");
  cluster_.Pass();  // the plan has the number 2, the status has not
  cluster_.RestartOperator();
  cluster_.DeletePod(kFirst);
  cluster_.DeletePod(kSecond);
  cluster_.SetSpec({{"runPolicy", {{"suspend", true}}}});
  cluster_.Pass();
  EXPECT_TRUE(cluster_.stored_plan()) << "nothing else has the number\n" << cluster_.trace();
  cluster_.failures.clear();
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_FALSE(cluster_.stored_plan());
  EXPECT_EQ(cluster_.status().coordinator_term, 2);
  cluster_.SetSpec({{"runPolicy", {{"suspend", false}}}});
  ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace();
  EXPECT_EQ(cluster_.stored_plan()->coordinator_term, 3);
}

TEST_F(SuccessionTest, ACoordinatorWhoseDeletionNobodySawGetsANewTerm) {
  cluster_.SetSpec({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  cluster_.SetSpec({{"runPolicy", {{"suspend", false}}}});
  while (!cluster_.pods().contains(kFirst)) {
    cluster_.Pass();
    cluster_.Advance(base::seconds(1));
  }
  cluster_.RestartOperator();
  cluster_.DeletePod(kFirst);
  ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace();
  EXPECT_EQ(cluster_.stored_plan()->coordinator_term, 3);
}

TEST_F(SuccessionTest, ADrainedNodeThatDiesDoesNotHoldTheJob) {
  cluster_.noticed_nodes = {"control-0"};
  cluster_.nodes_not_ready = {"control-0"};
  cluster_.Pass();
  cluster_.Advance(cluster_.options.schedule_window);
  ExpectMoved(1, kSecond);
}

TEST_F(SuccessionTest, TheOneThatHasTheJobIsAskedToSuspend) {
  cluster_.noticed_nodes = {"control-0"};
  cluster_.Pass();
  StepUntilHandedOver();
  ExpectSuspendedWithACheckpoint();
}

// It has handed the job over, and did not end yet.
TEST_F(SuccessionTest, ASuspensionDuringAHandOverAsksTheSuccessor) {
  cluster_.noticed_nodes = {"control-0"};
  cluster_.Pass();
  cluster_.TerminatePod(kFirst, base::seconds(25));
  ExpectSuspendedWithACheckpoint();
}

TEST_F(SuccessionTest, ASuspensionAfterTheFormerOneHasLeftWaitsForTheSuccessor) {
  cluster_.noticed_nodes = {"control-0"};
  cluster_.Pass();
  cluster_.DeletePod(kFirst);
  ExpectSuspendedWithACheckpoint();
}

TEST_F(SuccessionTest, ASuspensionWaitsForASuccessorOnlySoLong) {
  cluster_.noticed_nodes = {"control-0"};
  cluster_.coordinator_has_node = false;
  cluster_.Pass();
  cluster_.DeletePod(kFirst);
  cluster_.SetSpec({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.Reason(kSuspendedCondition), "True/Suspended") << cluster_.trace();
  EXPECT_THAT(cluster_.pod_names(), IsEmpty());
}

// For a job that was deleted and created again; no kubelet confirms that its pods have ended.
TEST(EarlierJobTest, PodsOnADeadNodeDoNotHoldAJobOfTheSameName) {
  FakeCluster cluster;
  cluster.hung_pods = {kFirst, kSecond, "adult-0-a-0"};
  for (const std::string& name : cluster.hung_pods) {
    const Json owner = {{"kind", "TrainingJob"}, {"name", "adult"}, {"uid", "job-0"}, {"controller", true}};
    cluster.PutPod(name, {{"kind", "Pod"},
                          {"metadata",
                           {{"name", name}, {"namespace", "ml"}, {"uid", "old-" + name}, {"ownerReferences", {owner}}}},
                          {"spec", {{"nodeName", "dead"}}},
                          {"status", {{"phase", "Running"}}}});
    cluster.TerminatePod(name, base::seconds(30));
  }
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_EQ(cluster.stored_plan()->CoordinatorPodName("adult"), "adult-coordinator-3");
  const PlanRecord plan = *cluster.stored_plan();
  for (const MemberSlot& slot : plan.slots) EXPECT_NE(slot.member, "adult-0-a-0");
  EXPECT_TRUE(cluster.HasEvent("FailedCreatePod", "Pod adult-0-a-0 of an earlier job")) << cluster.trace();
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

// The node dies after a restart has deleted the pods, and before its kubelet confirms it.
TEST(SuccessionWithoutCheckpointsTest, ANodeThatDiesDuringARestartDoesNotHoldTheJob) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.hung_pods = {kFirst};
  cluster.coordinator().phase = JobPhase::kFailed;
  cluster.coordinator().retryable = true;
  cluster.Pass();
  cluster.nodes_not_ready = {"control-0"};
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kRunningCondition), "True/GenerationCommitted") << cluster.trace();
  EXPECT_EQ(cluster.status().restarts, 1);
  EXPECT_EQ(cluster.status().counted_restarts, 1);
}

TEST(SuccessionWithoutCheckpointsTest, ANodeThatDiesDuringASuspensionDoesNotHoldTheJob) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.hung_pods = {kFirst};
  cluster.SetSpec({{"runPolicy", {{"suspend", true}}}});
  cluster.Pass();
  cluster.nodes_not_ready = {"control-0"};
  cluster.SetSpec({{"runPolicy", {{"suspend", false}}}});
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kRunningCondition), "True/GenerationCommitted") << cluster.trace();
  EXPECT_EQ(cluster.status().restarts, 0);
}

TEST(SuccessionWithoutCheckpointsTest, ADeadNodeRestartsTheJobUnderAnotherName) {
  FakeCluster cluster = FakeCluster::Training();
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
