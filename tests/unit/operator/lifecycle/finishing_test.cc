// Ends: suspension, deadline, time to live, which pods are cleaned up, deletion.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

class FinishingTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_THAT(cluster_.violations(), IsEmpty()); }
  FakeCluster cluster_ = FakeCluster::Training();
};

TEST_F(FinishingTest, SuspendTakesACheckpointAndGivesUpPodsAndPlan) {
  cluster_.SetSpec({{"runPolicy", {{"suspend", true}}}});
  EXPECT_THAT(cluster_.Pass().actions,
              ElementsAre("patch status", "suspend training", "delete ConfigMap adult-plan",
                          "delete pods adult-0-a-0, adult-0-a-1, adult-coordinator", "patch status"));
  EXPECT_EQ(cluster_.Message(kSuspendedCondition), "checkpoint at step 42");
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_THAT(cluster_.pod_names(), IsEmpty());
  EXPECT_TRUE(cluster_.status().start_time.empty());
  cluster_.RestartOperator();
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  cluster_.SetSpec({{"runPolicy", {{"suspend", false}}}});
  ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace();
  EXPECT_TRUE(cluster_.HasEvent("PlanAccepted", "(Resumed)"));
  EXPECT_EQ(cluster_.stored_plan()->plan.generation, 2);
  EXPECT_EQ(cluster_.last_request().training.remaining_samples, 999000);
}

TEST_F(FinishingTest, AnOperatorThatHasJustStartedTakesTheCheckpointToo) {
  cluster_.RestartOperator();
  cluster_.SetSpec({{"runPolicy", {{"suspend", true}}}});
  EXPECT_THAT(cluster_.Pass().actions, Contains("suspend training"));
  EXPECT_EQ(cluster_.Message(kSuspendedCondition), "checkpoint at step 42");
}

TEST_F(FinishingTest, SuspendWithoutACoordinatorDoesNotAsk) {
  cluster_.DeletePod("adult-coordinator");
  cluster_.SetSpec({{"runPolicy", {{"suspend", true}}}});
  EXPECT_THAT(cluster_.Pass().actions, testing::Not(Contains("suspend training")));
  EXPECT_EQ(cluster_.Message(kSuspendedCondition), "nothing was running");
}

TEST_F(FinishingTest, SuspendWithoutAnAnswerGoesOn) {
  cluster_.failures["suspend training"] = base::DeadlineExceeded("no answer within 60 s");
  cluster_.SetSpec({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_THAT(cluster_.Message(kSuspendedCondition), testing::HasSubstr("no answer within 60 s"));
  EXPECT_THAT(cluster_.pod_names(), IsEmpty());
}

TEST_F(FinishingTest, AJobPastItsDeadlineFails) {
  cluster_.SetSpec({{"runPolicy", {{"activeDeadlineSeconds", 100000}}}});
  EXPECT_EQ(cluster_.Pass().actions.size(), 1u);
  cluster_.Advance(base::seconds(100000));
  cluster_.Pass();
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "True/DeadlineExceeded");
}

TEST_F(FinishingTest, AFinishedJobIsDeletedAfterItsTimeToLive) {
  cluster_.SetSpec({{"runPolicy", {{"ttlSecondsAfterFinished", 3600}}}});
  cluster_.coordinator().phase = JobPhase::kComplete;
  cluster_.Pass();
  EXPECT_LE(cluster_.Pass().requeue_after, base::seconds(3600));
  cluster_.Advance(base::seconds(3600));
  EXPECT_THAT(cluster_.Pass().actions, Contains("delete TrainingJob adult"));
}

struct CleanCase {
  const char* policy;
  std::set<std::string> left;
};
class CleanTest : public testing::TestWithParam<CleanCase> {};

TEST_P(CleanTest, PodsOfAFinishedJob) {
  FakeCluster cluster;
  cluster.SetSpec({{"runPolicy", {{"cleanPodPolicy", GetParam().policy}}}});
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  cluster.FailPod("adult-0-a-1", 1);
  cluster.coordinator().phase = JobPhase::kComplete;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.pod_names(), GetParam().left);
}

INSTANTIATE_TEST_SUITE_P(All, CleanTest,
                         testing::Values(CleanCase{"All", {}}, CleanCase{"Running", {"adult-0-a-1"}},
                                         CleanCase{"None", {"adult-0-a-0", "adult-0-a-1", "adult-coordinator"}}),
                         [](const auto& each) { return std::string(each.param.policy); });

TEST_F(FinishingTest, TheCoordinatorOfACompleteJobMayEndByItself) {
  cluster_.coordinator().phase = JobPhase::kComplete;
  cluster_.Pass();
  cluster_.Advance(base::seconds(2));
  cluster_.StepCluster();
  EXPECT_THAT(cluster_.pod_names(), ElementsAre("adult-coordinator")) << "the members are deleted at once";
  EXPECT_LE(cluster_.Pass().requeue_after, base::seconds(30));
  cluster_.Advance(base::seconds(30));
  EXPECT_THAT(cluster_.Pass().actions, Contains("delete pods adult-coordinator")) << "it does not end";
}

TEST_F(FinishingTest, ADeletedJobKeepsItsFinalizerUntilItsPodsAreDeleted) {
  cluster_.job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_THAT(cluster_.Pass().actions, ElementsAre("delete pods adult-0-a-0, adult-0-a-1, adult-coordinator"));
  EXPECT_THAT(cluster_.Pass().actions, IsEmpty());
  cluster_.Advance(base::seconds(2));
  cluster_.StepCluster();
  EXPECT_THAT(cluster_.Pass().actions, ElementsAre("patch job"));
  EXPECT_THAT(cluster_.job["metadata"]["finalizers"], IsEmpty());
  EXPECT_THAT(cluster_.Pass().actions, IsEmpty());
}

// kubectl delete would hang while the operator is stopped.
TEST_F(FinishingTest, AFinishedJobWithoutRunningPodsHasNoFinalizer) {
  EXPECT_THAT(cluster_.job["metadata"]["finalizers"], testing::Not(IsEmpty()));
  cluster_.coordinator().phase = JobPhase::kComplete;
  cluster_.Pass();
  EXPECT_THAT(cluster_.job["metadata"]["finalizers"], testing::Not(IsEmpty())) << "the coordinator runs";
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_THAT(cluster_.job["metadata"]["finalizers"], IsEmpty());
}

// A merge patch keeps what it does not name.
TEST_F(FinishingTest, AnEndedJobHasNoEstimateOfItsEnd) {
  cluster_.coordinator().throughput = 100;
  cluster_.Advance(base::seconds(60));
  cluster_.Pass();
  ASSERT_TRUE(cluster_.job["status"]["observed"].contains("eta")) << cluster_.job["status"];
  cluster_.coordinator().phase = JobPhase::kComplete;
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_FALSE(cluster_.job["status"]["observed"].contains("eta")) << cluster_.job["status"];
  EXPECT_FALSE(cluster_.job["status"].value("cost", kube::Json::object()).contains("usdPerHour"));
}

// The Node object of a dead node stays, and so do its pods.
TEST_F(FinishingTest, ADeletedJobDoesNotWaitWithoutEndForAPodOnADeadNode) {
  cluster_.hung_pods = {"adult-0-a-1"};
  cluster_.job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  cluster_.Pass();
  cluster_.Advance(base::seconds(2));
  cluster_.StepCluster();
  EXPECT_THAT(cluster_.Pass().actions, IsEmpty());
  EXPECT_THAT(cluster_.pod_names(), ElementsAre("adult-0-a-1"));
  EXPECT_THAT(cluster_.job["metadata"]["finalizers"], testing::Not(IsEmpty())) << "the kubelet has some time to answer";
  cluster_.Advance(base::seconds(90));
  EXPECT_THAT(cluster_.Pass().actions, ElementsAre("patch job"));
  EXPECT_THAT(cluster_.job["metadata"]["finalizers"], IsEmpty());
}

TEST_F(FinishingTest, TheOutcomeIsWrittenBeforeAnythingIsCleaned) {
  cluster_.coordinator().phase = JobPhase::kComplete;
  cluster_.failures["patch status"] = base::Unavailable("the API server does not answer");
  const PassLog pass = cluster_.Pass();
  EXPECT_FALSE(pass.status.ok());
  EXPECT_EQ(cluster_.pods().size(), 3u);
  cluster_.failures.clear();
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.Reason(kCompleteCondition), "True/TrainingComplete");
  EXPECT_THAT(cluster_.pod_names(), IsEmpty());
}

}  // namespace
}  // namespace medley::ops::lifecycle
