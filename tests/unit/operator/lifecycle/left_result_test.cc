// A coordinator that ends while nobody listens leaves its result in its pod's status.
#include <gmock/gmock.h>

#include "common/job_result/job_result.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using job_result::JobResult;
using kube::Json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kCoordinatorPod[] = "adult-coordinator";

class LeftResultTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace(); }
  void TearDown() override { EXPECT_THAT(cluster_.violations(), IsEmpty()); }

  JobResult Result() const {
    return {.job_uid = kube::Object(cluster_.job).uid(),
            .step = 4000,
            .samples = 1000000,
            .samples_total = 1000000,
            .epochs = 3,
            .last_checkpoint_step = 4000,
            .metrics = {{"auc", 0.93}},
            .best = job_result::Best{3000, 2, "auc", 0.93, true},
            .exported = job_result::Exported{3000, 2, true}};
  }
  // The operator is down while the coordinator ends with this message.
  void EndUnheard(int code, const std::string& message) {
    Json end = {{"exitCode", code}};
    if (!message.empty()) end["message"] = message;
    cluster_.SetPodStatus(kCoordinatorPod, {{"phase", code == 0 ? "Succeeded" : "Failed"},
                                            {"containerStatuses",
                                             Json::array({{{"name", "worker"}, {"state", {{"terminated", end}}}}})}});
    cluster_.RestartOperator();
    ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  }
  std::string Message(const char* condition) { return cluster_.Message(condition); }

  FakeCluster cluster_;
};

TEST_F(LeftResultTest, CompleteJobHasItsResult) {
  EndUnheard(0, ToText(Result()));
  EXPECT_EQ(cluster_.Reason(kCompleteCondition), "True/TrainingComplete");
  EXPECT_EQ(Message(kCompleteCondition), "1000000 samples trained in 4000 steps");
  const ObservedStatus observed = *cluster_.status().observed;
  EXPECT_EQ(observed.samples, 1000000);
  EXPECT_EQ(observed.step, 4000);
  EXPECT_EQ(observed.progress_percent, 100);
  EXPECT_EQ(observed.metrics.at("auc"), 0.93);
  EXPECT_EQ(observed.best, (BestStatus{3000, 2, "auc", 0.93, "Validation"}));
  EXPECT_EQ(observed.exported, (ExportedStatus{"Best", 3000, 2}));
  EXPECT_EQ(observed.throughput, 1000);  // as observed before
}

TEST_F(LeftResultTest, JobThatStoppedEarlySaysWhy) {
  JobResult result = Result();
  result.stopped_early = true;
  result.samples = 500000;
  result.reason = "auc has not improved for 2 evaluations";
  EndUnheard(0, ToText(result));
  EXPECT_EQ(cluster_.Reason(kCompleteCondition), "True/StoppedEarly");
  EXPECT_EQ(Message(kCompleteCondition), result.reason);
}

TEST_F(LeftResultTest, StatusSaysThatNothingIsKnown) {
  const auto before = cluster_.status().observed->metrics;
  EndUnheard(0, "");
  EXPECT_EQ(cluster_.Reason(kCompleteCondition), "True/TrainingComplete");
  EXPECT_THAT(Message(kCompleteCondition),
              AllOf(HasSubstr("Nobody has read its last report, and its pod has no termination message"),
                    HasSubstr("status shows what was observed before")));
  EXPECT_EQ(cluster_.status().observed->metrics, before);
  EXPECT_EQ(cluster_.status().observed->step, 0);
}

TEST_F(LeftResultTest, MessageThatCannotBeBelievedIsNamedAndNotUsed) {
  JobResult other = Result();
  other.job_uid = "another";
  const auto before = cluster_.status().observed->metrics;
  EndUnheard(0, ToText(other));
  EXPECT_EQ(cluster_.Reason(kCompleteCondition), "True/TrainingComplete");
  EXPECT_THAT(Message(kCompleteCondition),
              HasSubstr("termination message is not used: it is the result of another job"));
  EXPECT_EQ(cluster_.status().observed->metrics, before);
}

TEST_F(LeftResultTest, LiarsPhaseDoesNotCompleteTheJob) {
  EndUnheard(2, ToText(Result()));
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "True/TrainingFailed");
  EXPECT_THAT(Message(kFailedCondition), HasSubstr("segmentation fault"));  // the log's last line
  EXPECT_THAT(cluster_.status().observed->metrics, IsEmpty());
}

TEST_F(LeftResultTest, ObservationCountsMoreThanTheMessage) {
  cluster_.coordinator().phase = JobPhase::kComplete;
  cluster_.coordinator().samples_done = 1000000;
  cluster_.coordinator().step = 3900;
  cluster_.coordinator().metrics = {{"auc", 0.91}};
  JobResult other = Result();
  other.metrics["auc"] = 0.99;
  const Json end = {{"exitCode", 0}, {"message", ToText(other)}};
  cluster_.SetPodStatus(kCoordinatorPod,
                        {{"containerStatuses", Json::array({{{"name", "worker"}, {"state", {{"terminated", end}}}}})}});
  cluster_.Pass();
  EXPECT_EQ(cluster_.Reason(kCompleteCondition), "True/TrainingComplete");
  EXPECT_EQ(cluster_.status().observed->metrics.at("auc"), 0.91);
  EXPECT_EQ(cluster_.status().observed->step, 3900);
}

TEST_F(LeftResultTest, FailedCoordinatorKeepsItsReason) {
  JobResult result = Result();
  result.phase = job_result::Phase::kFailed;
  result.samples = 7000;
  result.reason = "the loss is not finite at step 27";
  EndUnheard(2, ToText(result));
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "True/TrainingFailed");
  EXPECT_EQ(Message(kFailedCondition), result.reason);
  EXPECT_EQ(cluster_.status().observed->samples, 7000);
}

TEST_F(LeftResultTest, RestartSaysTheReasonOfTheFailure) {
  JobResult result = Result();
  result.phase = job_result::Phase::kFailed;
  result.reason = "trainer 3 cannot be reached";
  const Json end = {{"exitCode", 1}, {"message", ToText(result)}};
  cluster_.SetPodStatus(
      kCoordinatorPod,
      {{"containerStatuses",
        Json::array({{{"name", "worker"}, {"restartCount", 1}, {"lastState", {{"terminated", end}}}}})}});
  EXPECT_THAT(cluster_.Pass().events,
              testing::Contains(HasSubstr("trainer 3 cannot be reached. the coordinator was restarted in place.")));
}

TEST_F(LeftResultTest, LastLineIsInTheStatusWhenTheLogIsLost) {
  cluster_.failures["read log"] = absl::UnavailableError("the node does not answer");
  EndUnheard(2, "starting\nmedley-worker: coordinator: no space left on device\n");
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "True/TrainingFailed");
  EXPECT_EQ(Message(kFailedCondition), "no space left on device");
}

// The operator asks, and does not hear the answer.
TEST_F(LeftResultTest, SuspendedCoordinatorSaysItsCheckpoint) {
  cluster_.delays["suspend training"] = std::chrono::hours(1);
  cluster_.SetSpec({{"runPolicy", {{"suspend", true}}}});
  cluster_.Pass();
  ASSERT_EQ(cluster_.Reason(kSuspendedCondition), "Unknown/Suspending");
  JobResult result = Result();
  result.phase = job_result::Phase::kSuspended;
  result.samples = 400000;
  EndUnheard(0, ToText(result));
  EXPECT_EQ(cluster_.Reason(kSuspendedCondition), "True/Suspended");
  EXPECT_EQ(Message(kSuspendedCondition), "checkpoint at step 4000");
  EXPECT_EQ(cluster_.status().observed->samples, 400000);
  EXPECT_EQ(cluster_.Reason(kCompleteCondition), "");
}

// A user suspended the job and resumed it while the operator was down.
TEST_F(LeftResultTest, SuspendedJobThatNobodySuspendsTrainsOn) {
  JobResult result = Result();
  result.phase = job_result::Phase::kSuspended;
  result.samples = 400000;
  EndUnheard(0, ToText(result));
  EXPECT_EQ(cluster_.Reason(kCompleteCondition), "");
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted");
  EXPECT_EQ(cluster_.status().restarts, 1);
  EXPECT_EQ(cluster_.status().counted_restarts, 0);
}

}  // namespace
}  // namespace medley::ops::lifecycle
