// The life of a job, from kubectl apply to cleaning up, with everything around the operator real or
// behind real gRPC.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "common/job_result/job_result.h"
#include "operator/api/resources.h"
#include "tests/integration/operator/harness.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class LifeTest : public OperatorHarness {
 protected:
  void SetUp() override {
    OperatorHarness::SetUp();
    StartOperator();
  }
  // As its kubelet reports it.
  void EndWorker(const std::string& pod, int code, const std::string& message) {
    Json end = {{"exitCode", code}};
    if (!message.empty()) end["message"] = message;
    SetPod(pod, {{"phase", code == 0 ? "Succeeded" : "Failed"},
                 {"containerStatuses", Json::array({{{"name", "worker"},
                                                     {"image", "i"},
                                                     {"imageID", ""},
                                                     {"ready", false},
                                                     {"restartCount", 0},
                                                     {"state", {{"terminated", end}}}}})}});
  }
};

INSTANTIATE_TEST_SUITE_P(On, LifeTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);

TEST_P(LifeTest, AJobIsProfiledPlannedRunAndFinished) {
  RunJob();
  EXPECT_THAT(PodNames(), UnorderedElementsAre("adult-coordinator", "adult-0-cpu-0", "adult-0-cpu-1", "adult-1-gpu-0",
                                               "adult-server-0"));
  EXPECT_EQ(coordinator_.members(),
            (std::set<std::string>{"adult-0-cpu-0", "adult-0-cpu-1", "adult-1-gpu-0", "adult-server-0"}));
  for (const auto& [resource, name] :
       std::vector<std::pair<kube::Resource, std::string>>{{kube::resources::Services(), "adult-coordinator"},
                                                           {kube::resources::ConfigMaps(), "adult-spec"},
                                                           {kube::resources::Secrets(), SecretOf("adult")},
                                                           {kube::resources::NetworkPolicies(), "adult"}}) {
    EXPECT_TRUE(Exists(resource, {ns_, name})) << name;
  }
  EXPECT_EQ(scheduler_.last().resources.size(), 2u);
  EXPECT_EQ(scheduler_.last().server_type, "cpu");
  coordinator_.Progress(250000, 2000);
  ASSERT_TRUE(Eventually([&] { return Status().observed && Status().observed->progress_percent == 25; }, "25 %"));
  const JobStatus status = Status();
  EXPECT_EQ(status.Phase(), "Running");
  EXPECT_EQ(status.plan->summary, "emb@2xcpu | fc..loss@1xgpu + 1 server@cpu");
  EXPECT_EQ(status.plan->alternatives.size(), 1u);
  EXPECT_EQ(status.replicas, 3);
  EXPECT_EQ(status.observed->estimated_remaining_seconds, 375);
  EXPECT_FALSE(status.cost->saved_usd.has_value());  // there was no move
  coordinator_.Complete();
  ASSERT_TRUE(WaitForCondition("Complete", "True"));
  EXPECT_EQ(Status().observed->metrics.at("auc"), 0.92);
  EXPECT_FALSE(Status().completion_time.empty());
  EXPECT_TRUE(Eventually([&] { return PodNames() == std::set<std::string>{"adult-coordinator"}; },
                         "running pods are cleaned; the coordinator has ended by itself"));
  EXPECT_TRUE(Eventually([&] { return HasEvent("Completed"); }, "event"));
  EXPECT_TRUE(HasEvent("PlanAccepted", "emb@2xcpu"));
}

// For the pods as the operator's cache holds them: two units of pool cpu, one of pool gpu, a server, and a coordinator.
TEST_P(LifeTest, WhatThePodsCostIsCounted) {
  RunJob();
  clock_.Advance(std::chrono::hours(1));
  ASSERT_TRUE(Eventually([&] { return Status().cost && Status().cost->spent_usd > 0.5; }, "an hour is counted"));
  const JobStatus status = Status();
  EXPECT_NEAR(status.cost->spent_usd, status.plan->usd_per_hour, 0.1);
  EXPECT_FALSE(status.cost->counted_until.empty());
}

TEST_P(LifeTest, ProfilesAreReusedByALaterJob) {
  RunJob();
  const auto maps = client_->List(kube::resources::ConfigMaps(), {.ns = ns_, .label_selector = kProfileLabel});
  ASSERT_THAT(maps, base::IsOk());
  EXPECT_EQ(maps->items.size(), 2u);
  profiler_exit_ = 1;  // a second measurement would fail
  Apply(TrainingJobs(), JobJson("second"));
  EXPECT_TRUE(Eventually([&] { return Status("second").conditions.IsTrue("Planned"); }, "planned without profiling"));
  EXPECT_EQ(Status("second").restarts, 0);
}

TEST_P(LifeTest, AMemberThatDiesIsReplacedUnderItsName) {
  RunJob();
  const std::string before = Get(kube::resources::Pods(), {ns_, "adult-0-cpu-1"}).uid();
  SetPod("adult-0-cpu-1", {{"phase", "Failed"}});
  EXPECT_TRUE(Eventually(
      [&] {
        const auto pod = client_->Get(kube::resources::Pods(), {ns_, "adult-0-cpu-1"});
        return pod.ok() && pod->uid() != before && pod->String("/status/phase") == "Running";
      },
      "a new pod under the old name"));
  EXPECT_EQ(coordinator_.applied().size(), 1u);
  EXPECT_EQ(Status().restarts, 0);
}

TEST_P(LifeTest, ARecoverySaysWhoWasLost) {
  RunJob();
  coordinator_.Recover("adult-0-cpu-1");
  ASSERT_TRUE(Eventually([&] { return Status().last_rescale.has_value(); }, "the switch"));
  EXPECT_EQ(Status().last_rescale->reason, "MemberLost");
  EXPECT_TRUE(Status().last_rescale->recovery);
  EXPECT_TRUE(Eventually(
      [&] {
        return HasEvent("Recovered",
                        "generation 1 -> 2 (adult-0-cpu-1 was lost): training stood still for 0.000 s, "
                        "2 steps trained again");
      },
      "event"));
}

TEST_P(LifeTest, ALostCoordinatorIsARestartAndMembersAreMadeForTheNewOne) {
  RunJob();
  coordinator_.Forget();
  ASSERT_THAT(client_->Delete(kube::resources::Pods(), {ns_, "adult-coordinator"}), base::IsOk());
  ASSERT_TRUE(Eventually([&] { return Status().restarts == 1; }, "one restart"));
  EXPECT_TRUE(WaitForCondition("Restarting", "False"));
  EXPECT_TRUE(WaitForCondition("PodsReady", "True"));
  EXPECT_EQ(Status().restarts, 1);
  EXPECT_EQ(coordinator_.applied().back().first, 1);
}

TEST_P(LifeTest, BackoffLimitEndsRestarts) {
  Json job = JobJson();
  job["spec"]["runPolicy"]["backoffLimit"] = 1;
  Apply(TrainingJobs(), job);
  ASSERT_TRUE(WaitForCondition("Running", "True"));
  coordinator_.Fail("diverged", true);
  ASSERT_TRUE(Eventually([&] { return Status().restarts == 1; }, "first restart"));
  coordinator_.Forget();
  ASSERT_TRUE(WaitForCondition("Running", "True"));
  coordinator_.Fail("diverged again", true);
  ASSERT_TRUE(WaitForCondition("Failed", "True", "BackoffLimitExceeded"));
  EXPECT_THAT(Status().conditions.Find("Failed")->message, HasSubstr("diverged again"));
  EXPECT_TRUE(Eventually([&] { return PodNames().empty(); }, "pods are deleted"));
}

TEST_P(LifeTest, SuspendCheckpointsAndGivesPodsBackResumePlansAgain) {
  RunJob();
  coordinator_.Progress(400000, 1000);
  ASSERT_TRUE(Eventually([&] { return Status().observed && Status().observed->samples == 400000; }, "progress"));
  PatchSpec("adult", {{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(WaitForCondition("Suspended", "True"));
  EXPECT_TRUE(Eventually([&] { return PodNames().empty(); }, "pods are given back"));
  EXPECT_EQ(coordinator_.suspends(), 1);
  EXPECT_EQ(Status().start_time, "");
  coordinator_.Forget();
  const int plans = scheduler_.plans();
  PatchSpec("adult", {{"runPolicy", {{"suspend", false}}}});
  ASSERT_TRUE(WaitForCondition("Running", "True"));
  EXPECT_GT(scheduler_.plans(), plans);
  EXPECT_EQ(coordinator_.applied().back(), (std::pair<int64_t, std::string>{2, "Resumed"}));
  EXPECT_EQ(scheduler_.last().training.remaining_samples, 600000);
}

TEST_P(LifeTest, FinishedJobsGoAfterTheirTtl) {
  Json job = JobJson();
  job["spec"]["runPolicy"] = {{"ttlSecondsAfterFinished", 600}, {"cleanPodPolicy", "None"}};
  Apply(TrainingJobs(), job);
  ASSERT_TRUE(WaitForCondition("Running", "True"));
  coordinator_.Complete();
  ASSERT_TRUE(WaitForCondition("Complete", "True"));
  Settle();
  EXPECT_THAT(PodNames(), Contains("adult-coordinator"));  // cleanPodPolicy None
  EXPECT_TRUE(Exists(TrainingJobs(), {ns_, "adult"}));
  clock_.Advance(base::seconds(601));
  EXPECT_TRUE(Eventually([&] { return !Exists(TrainingJobs(), {ns_, "adult"}); }, "the job is deleted"));
  EXPECT_TRUE(Eventually([&] { return PodNames().empty(); }, "and its pods"));
}

TEST_P(LifeTest, ActiveDeadlineFailsTheJob) {
  Json job = JobJson();
  job["spec"]["runPolicy"]["activeDeadlineSeconds"] = 1000;
  Apply(TrainingJobs(), job);
  ASSERT_TRUE(WaitForCondition("Running", "True"));
  clock_.Advance(base::seconds(1001));
  EXPECT_TRUE(WaitForCondition("Failed", "True", "DeadlineExceeded"));
}

TEST_P(LifeTest, DeletionTakesThePodsFirst) {
  RunJob();
  ASSERT_THAT(client_->Delete(TrainingJobs(), {ns_, "adult"}), base::IsOk());
  EXPECT_TRUE(Eventually([&] { return !Exists(TrainingJobs(), {ns_, "adult"}) && PodNames().empty(); }, "deleted"));
}

TEST_P(LifeTest, JobsOfOtherManagersAreLeftAlone) {
  Json job = JobJson();
  job["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  Apply(TrainingJobs(), job);
  Settle();
  EXPECT_THAT(PodNames(), IsEmpty());
  EXPECT_THAT(Status().conditions.all(), IsEmpty());
}

TEST_P(LifeTest, JobThatEndsWithoutAnOperatorHasItsResult) {
  RunJob();
  coordinator_.Progress(250000, 2000);
  ASSERT_TRUE(Eventually([&] { return Status().observed && Status().observed->samples == 250000; }, "progress"));
  StopOperator();
  const job_result::JobResult result{.job_uid = Get(TrainingJobs(), {ns_, "adult"}).uid(),
                                     .step = 4000,
                                     .samples = 1000000,
                                     .samples_total = 1000000,
                                     .metrics = {{"auc", 0.93}},
                                     .best = job_result::Best{3000, 2, "auc", 0.93, true},
                                     .exported = job_result::Exported{3000, 2, true}};
  EndWorker("adult-coordinator", 0, ToText(result));
  coordinator_.Forget();
  StartOperator();
  ASSERT_TRUE(WaitForCondition("Complete", "True", "TrainingComplete"));
  const JobStatus status = Status();
  EXPECT_EQ(status.conditions.Find("Complete")->message, "1000000 samples trained in 4000 steps");
  EXPECT_EQ(status.observed->samples, 1000000);
  EXPECT_EQ(status.observed->step, 4000);
  EXPECT_EQ(status.observed->metrics.at("auc"), 0.93);
  EXPECT_EQ(status.observed->best, (BestStatus{3000, 2, "auc", 0.93, "Validation"}));
  EXPECT_EQ(status.observed->exported, (ExportedStatus{"Best", 3000, 2}));
}

TEST_P(LifeTest, JobThatEndsWithoutAnOperatorAndWithoutAMessageSaysSo) {
  RunJob();
  StopOperator();
  EndWorker("adult-coordinator", 0, "");
  coordinator_.Forget();
  StartOperator();
  ASSERT_TRUE(WaitForCondition("Complete", "True", "TrainingComplete"));
  EXPECT_THAT(Status().conditions.Find("Complete")->message, HasSubstr("its pod has no termination message"));
  EXPECT_TRUE(!Status().observed || Status().observed->metrics.empty());
}

TEST_P(LifeTest, JobThatFailsWithoutAnOperatorKeepsTheReason) {
  RunJob();
  StopOperator();
  const job_result::JobResult result{.job_uid = Get(TrainingJobs(), {ns_, "adult"}).uid(),
                                     .phase = job_result::Phase::kFailed,
                                     .reason = "the loss is not finite at step 27"};
  EndWorker("adult-coordinator", 2, ToText(result));
  coordinator_.Forget();
  StartOperator();
  ASSERT_TRUE(WaitForCondition("Failed", "True", "TrainingFailed"));
  EXPECT_EQ(Status().conditions.Find("Failed")->message, result.reason);
}

TEST_P(LifeTest, AnotherOperatorGoesOnWhereThisOneStopped) {
  RunJob();
  StopOperator();
  const int plans = scheduler_.plans();
  coordinator_.Progress(500000, 1000);
  SetPod("adult-1-gpu-0", {{"phase", "Failed"}});
  StartOperator();
  EXPECT_TRUE(Eventually([&] { return Status().observed && Status().observed->samples == 500000; }, "observed"));
  EXPECT_TRUE(WaitForCondition("PodsReady", "True"));
  EXPECT_EQ(coordinator_.applied().size(), 1u);  // the same plan, not another
  EXPECT_EQ(scheduler_.plans(), plans);
  EXPECT_EQ(Status().restarts, 0);
}

}  // namespace
}  // namespace medley::ops
