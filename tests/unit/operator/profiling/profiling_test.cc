// The life of a profile: when it is measured, what becomes of the profiler's log, and when a failure is tried again.
#include "operator/profiling/profiling.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"

namespace medley::ops::profiling {
namespace {

using kube::Json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Stage = ProfileProgress::Stage;
using Step = Decision::Step;

constexpr char kLog[] =
    R"(MEDLEY-PROFILE {"id": "p", "profileBatchSize": 512, "samplesPerEpoch": "10", "model": {"layers": [{"name": "fc", "kind": "OTHER", "profiles": [{"resourceType": "a", "computeSeconds": 1}]}]}})"
    "\n";

class ProfilingTest : public testing::Test {
 protected:
  ProfilingTest() {
    const Json job = Json::parse(R"({"metadata": {"name": "adult", "namespace": "ml", "uid": "job-1"},
      "spec": {"model": {"name": "ctrdnn"},
               "data": {"train": {"uri": "file:///data/train.csv", "format": "csv"},
                        "schema": {"label": {"column": 0}, "categorical": [1], "numeric": [2]}}}})");
    const Json pool = Json::parse(
        R"({"metadata": {"name": "a", "uid": "pool-1", "generation": 1}, "spec": {"class": "CPU", "limit": 4,
      "price": {"usdPerUnitHour": "1"}, "unit": {"resources": {"cpu": "1"}}}})");
    world_.job = TrainingJob::FromObject(kube::Object(job)).value();
    world_.pool = ResourcePool::FromObject(kube::Object(pool)).value();
    world_.steady = base::SteadyTime(base::seconds(1000));
    world_.free_units = 1;
    world_.bound = "nodes of a";
  }
  void Advance(base::nanoseconds by) {
    world_.steady += by;
    world_.now += std::chrono::duration_cast<base::WallTime::duration>(by);
  }
  // A profiler pod that runs since now.
  void Start() {
    Json pod = {
        {"metadata", {{"name", "adult-profile-a"}, {"namespace", "ml"}, {"uid", "pod-" + std::to_string(++pods_)}}},
        {"status", {{"phase", "Running"}}}};
    world_.pods = {std::make_shared<const kube::Object>(pod)};
    world_.log.reset();
  }
  void End(int code, std::optional<absl::StatusOr<std::string>> log) {
    Json pod = world_.pods.front()->json();
    pod["status"] = {
        {"phase", code == 0 ? "Succeeded" : "Failed"},
        {"containerStatuses", Json::array({{{"name", "worker"}, {"state", {{"terminated", {{"exitCode", code}}}}}}})}};
    world_.pods = {std::make_shared<const kube::Object>(pod)};
    world_.log = std::move(log);
  }
  // The API server has marked the pod for deletion; its grace period ends after `grace`.
  void Terminate(base::nanoseconds grace) {
    Json pod = world_.pods.front()->json();
    const base::WallTime due = world_.now + std::chrono::duration_cast<base::WallTime::duration>(grace);
    pod["metadata"]["deletionTimestamp"] = base::FormatTime(due);
    world_.pods = {std::make_shared<const kube::Object>(pod)};
  }
  Decision Pass() {
    Decision decision = Decide(world_, memory_, options_);
    memory_ = decision.memory;
    return decision;
  }

  World world_;
  Memory memory_;
  Options options_;
  int pods_ = 0;
};

TEST_F(ProfilingTest, IsMeasuredOnceAndStored) {
  Decision decision = Pass();
  EXPECT_EQ(decision.step, Step::kCreatePod);
  EXPECT_EQ(decision.progress->stage, Stage::kRunning);
  Start();
  decision = Pass();
  EXPECT_EQ(decision.step, Step::kNone);
  EXPECT_EQ(decision.requeue_after, options_.node_poll);
  End(0, std::nullopt);
  EXPECT_EQ(Pass().step, Step::kReadLog);
  End(0, kLog);
  decision = Pass();
  EXPECT_EQ(decision.step, Step::kStore);
  EXPECT_THAT(decision.profile, HasSubstr("\"resourceType\": \"a\""));
  EXPECT_THAT(decision.events, SizeIs(1));
  world_.stored = true;
  decision = Pass();
  EXPECT_EQ(decision.step, Step::kDeletePods);
  EXPECT_EQ(decision.progress, std::nullopt);
  world_.pods.clear();
  EXPECT_EQ(Pass().step, Step::kNone);
}

TEST_F(ProfilingTest, AProfileThatNoJobWantsIsNotMeasured) {
  world_.job.reset();
  EXPECT_EQ(Pass().step, Step::kNone);
  Start();
  EXPECT_EQ(Pass().step, Step::kDeletePods);
}

TEST_F(ProfilingTest, WaitsForAFreeUnit) {
  world_.free_units = 0;
  const Decision decision = Pass();
  EXPECT_EQ(decision.step, Step::kNone);
  EXPECT_EQ(decision.progress->stage, Stage::kWaiting);
  EXPECT_THAT(decision.progress->message, HasSubstr("limited by nodes of a"));
  EXPECT_EQ(decision.requeue_after, options_.unit_poll);
}

TEST_F(ProfilingTest, WaitsForThePodsOfOtherProfiles) {
  world_.other_pods = true;
  const Decision decision = Pass();
  EXPECT_EQ(decision.step, Step::kNone);
  EXPECT_THAT(decision.progress->message, HasSubstr("waits for other profiler pods to end"));
  EXPECT_EQ(decision.requeue_after, options_.turn_poll);
}

TEST_F(ProfilingTest, FailuresAreCountedOnceAndRetriedWithBackoff) {
  base::nanoseconds expected = options_.first_retry;
  for (int failure = 1; failure <= 12; ++failure) {
    Start();
    End(1, "line\ncannot read data\n");
    Decision decision = Pass();
    EXPECT_EQ(decision.step, Step::kDeletePods);
    EXPECT_THAT(decision.events, SizeIs(1));
    EXPECT_EQ(decision.progress->failures.at("job-1"), failure);
    EXPECT_THAT(decision.progress->message,
                "cannot read data. Profiler pod ml/adult-profile-a of pool a failed with exit code 1.");
    EXPECT_THAT(Pass().events, IsEmpty());  // the same pod
    world_.pods.clear();
    decision = Pass();
    EXPECT_EQ(decision.step, Step::kNone);
    EXPECT_EQ(decision.progress->stage, Stage::kFailed);
    EXPECT_EQ(decision.requeue_after, expected);
    Advance(expected);
    EXPECT_EQ(Pass().step, Step::kCreatePod);
    expected = std::min(expected * 2, options_.longest_retry);
  }
}

TEST_F(ProfilingTest, APermanentFailureIsRetriedOnlyAfterAnEditOfThePool) {
  Start();
  End(2, "no such column\n");
  EXPECT_EQ(Pass().progress->stage, Stage::kRefused);
  world_.pods.clear();
  Advance(std::chrono::hours(5));
  Decision decision = Pass();
  EXPECT_EQ(decision.step, Step::kNone);
  EXPECT_THAT(
      decision.progress->message,
      "no such column. Profiler pod ml/adult-profile-a of pool a failed with exit code 2. A retry will not help.");
  // Unless the pool is edited.
  Json edited = world_.pool->object.json();
  edited["metadata"]["generation"] = 2;
  world_.pool = ResourcePool::FromObject(kube::Object(edited)).value();
  decision = Pass();
  EXPECT_EQ(decision.step, Step::kCreatePod);
  EXPECT_EQ(decision.progress->stage, Stage::kRunning);
}

TEST_F(ProfilingTest, ThePoolDoesNotShowWhatAProfilerOfAnotherNamespacePrints) {
  Start();
  End(1, "cannot read /secret/path\n");
  EXPECT_EQ(Pass().progress->public_message, "Profiler pod ml/adult-profile-a of pool a failed with exit code 1.");
}

TEST_F(ProfilingTest, TheBrokenTemplateOfOneJobDoesNotKeepTheOthersFromTheirProfile) {
  EXPECT_EQ(ChooseJob({"job-1", "job-2"}, memory_), "job-1");
  Start();
  End(2, "no such volume\n");
  Pass();
  world_.pods.clear();
  EXPECT_EQ(ChooseJob({"job-1", "job-2"}, memory_), "job-2");
  Json second = world_.job->object.json();
  second["metadata"]["uid"] = "job-2";
  world_.job = TrainingJob::FromObject(kube::Object(second)).value();
  const Decision decision = Pass();
  EXPECT_EQ(decision.step, Step::kCreatePod);  // at once
  EXPECT_THAT(decision.progress->refused, testing::ElementsAre("job-1"));
  EXPECT_EQ(ChooseJob({"job-1"}, memory_), "job-1");  // and nothing is tried for it again
}

TEST_F(ProfilingTest, AFailureCountsForTheJobWhoseTemplateThePodHas) {
  Start();
  Json pod = world_.pods.front()->json();
  pod["metadata"]["ownerReferences"] = Json::array(
      {{{"apiVersion", "v1"}, {"kind", "TrainingJob"}, {"name", "other"}, {"uid", "job-9"}, {"controller", true}}});
  world_.pods = {std::make_shared<const kube::Object>(pod)};
  End(2, "no such volume\n");
  EXPECT_THAT(Pass().progress->refused, testing::ElementsAre("job-9"));
  world_.pods.clear();
  EXPECT_EQ(Pass().step, Step::kCreatePod);
}

TEST_F(ProfilingTest, ALogWithoutAProfileIsAFailure) {
  const absl::StatusOr<std::string> logs[] = {"", "MEDLEY-PROFILE {\n", base::NotFound("no such pod"),
                                              base::InvalidArgument("container is not available")};
  for (const auto& log : logs) {
    Start();
    End(0, log);
    const Decision decision = Pass();
    EXPECT_EQ(decision.step, Step::kDeletePods);
    EXPECT_EQ(decision.progress->reason, Reason::kProfileUnreadable);
  }
  EXPECT_EQ(memory_.failures.at("job-1"), 4);
}

TEST_F(ProfilingTest, AProfilerThatDoesNotEndIsDeleted) {
  Start();
  Pass();
  Advance(options_.deadline - base::seconds(1));
  EXPECT_EQ(Pass().requeue_after, base::seconds(1));
  Advance(base::seconds(1));
  const Decision decision = Pass();
  EXPECT_EQ(decision.step, Step::kDeletePods);
  EXPECT_EQ(decision.progress->reason, Reason::kProfilingTimedOut);
}

TEST_F(ProfilingTest, WhileOthersWaitForTheirTurnAPodGetsLittleTimeAtFirst) {
  options_.max_pods = 1;
  base::nanoseconds time = options_.turn_deadline;
  for (int failure = 0; failure < 6; ++failure) {
    Start();
    EXPECT_LE(*Pass().requeue_after, options_.unit_poll) << "others may begin to wait";
    world_.others_wait = true;
    Advance(time - base::seconds(1));
    EXPECT_EQ(Pass().step, Step::kNone);
    Advance(base::seconds(1));
    const Decision decision = Pass();
    EXPECT_EQ(decision.step, Step::kDeletePods);
    EXPECT_EQ(decision.progress->reason, Reason::kProfilingTimedOut);
    EXPECT_FALSE(decision.no_node);
    time = std::min(2 * time, options_.deadline);
    world_.others_wait = false;
  }
}

TEST_F(ProfilingTest, AnEditOfThePoolReplacesThePodUnlessTheMeasurementIsTheSame) {
  Start();
  Json pod = world_.pods.front()->json();
  pod["metadata"]["annotations"]["medley.dev/pool-version"] = PoolVersion(*world_.pool);
  world_.pods = {std::make_shared<const kube::Object>(pod)};
  const auto edit = [&](const Json& spec) {
    Json pool = world_.pool->object.json();
    pool["spec"].merge_patch(spec);
    pool["metadata"]["generation"] = pool["metadata"]["generation"].get<int>() + 1;
    world_.pool = ResourcePool::FromObject(kube::Object(pool)).value();
  };
  edit({{"limit", 9}, {"price", {{"usdPerUnitHour", "2"}}}});
  EXPECT_EQ(Pass().step, Step::kNone);
  edit({{"nodeSelector", {{"kind", "b"}}}});
  EXPECT_EQ(Pass().step, Step::kDeletePods);
  End(0, std::string(kLog));
  EXPECT_EQ(Pass().step, Step::kDeletePods) << "what it measured on the old nodes does not count";
  EXPECT_THAT(memory_.failures, IsEmpty());
  world_.pods.clear();
  EXPECT_EQ(Pass().step, Step::kCreatePod);
}

TEST_F(ProfilingTest, APodOfAnAutoscaledPoolForWhichNoNodeComesIsAnOutage) {
  world_.pool->scaling = PoolScaling::kAutoscaled;
  world_.pool->provision_timeout_seconds = 900;
  Start();
  const auto set = [&](const Json& patch) {
    Json pod = world_.pods.front()->json();
    pod.merge_patch(patch);
    world_.pods = {std::make_shared<const kube::Object>(pod)};
  };
  set({{"status", {{"phase", "Pending"}}}});
  Pass();
  Advance(base::seconds(899));
  EXPECT_EQ(Pass().step, Step::kNone) << "an autoscaler may take longer than a measurement";
  Advance(base::seconds(1));
  Decision decision = Pass();
  EXPECT_EQ(decision.step, Step::kDeletePods);
  EXPECT_TRUE(decision.no_node);
  EXPECT_FALSE(Pass().no_node) << "the same pod";

  Start();
  set({{"status", {{"phase", "Pending"}}}});
  Pass();
  Advance(base::seconds(899));
  set({{"spec", {{"nodeName", "n"}}}});
  EXPECT_EQ(Pass().step, Step::kNone);
  Advance(options_.deadline - base::seconds(1));
  EXPECT_EQ(Pass().step, Step::kNone) << "the measurement has its own time";
  Advance(base::seconds(1));
  decision = Pass();
  EXPECT_EQ(decision.step, Step::kDeletePods);
  EXPECT_FALSE(decision.no_node);
}

TEST_F(ProfilingTest, APodThatCannotBeCreatedIsTriedAgainLater) {
  EXPECT_EQ(Pass().step, Step::kCreatePod);
  Decision decision = AfterFailedCreation(world_, memory_, options_, "exceeded quota: team");
  memory_ = decision.memory;
  EXPECT_THAT(decision.events, SizeIs(1));
  EXPECT_EQ(decision.requeue_after, options_.first_retry);
  decision = Pass();
  EXPECT_EQ(decision.step, Step::kNone);
  EXPECT_EQ(decision.progress->stage, Stage::kWaiting);  // nobody gives up for that
  EXPECT_THAT(decision.progress->message, HasSubstr("exceeded quota: team."));
  Advance(options_.first_retry);
  EXPECT_EQ(Pass().step, Step::kCreatePod);
}

TEST_F(ProfilingTest, APodThatTerminatesIsLeftAlone) {
  Start();
  Terminate(base::seconds(30));
  EXPECT_EQ(Pass().step, Step::kNone);
  world_.stored = true;
  EXPECT_EQ(Pass().step, Step::kNone);
}

// The Node object of a dead machine stays, and the pod with it.
TEST_F(ProfilingTest, AnOverdueDeletionIsForced) {
  Start();
  Terminate(base::seconds(30));
  Decision decision = Pass();
  EXPECT_EQ(decision.step, Step::kNone);
  EXPECT_EQ(decision.requeue_after, base::seconds(30) + options_.overdue);
  Advance(*decision.requeue_after);
  EXPECT_EQ(Pass().step, Step::kForceDeletePods);
  EXPECT_TRUE(DeletionIsOverdue(*world_.pods.front(), world_.now, options_));
  world_.pods.clear();
  EXPECT_EQ(Pass().step, Step::kCreatePod);  // at once: nothing has failed
}

// It would keep its place among max_pods.
TEST_F(ProfilingTest, AnOverdueDeletionIsForcedAlsoWhenNobodyWantsTheProfile) {
  Start();
  Terminate(base::seconds(0));
  world_.job.reset();
  Decision decision = Pass();
  EXPECT_EQ(decision.step, Step::kNone);
  EXPECT_EQ(decision.requeue_after, options_.overdue);
  Advance(*decision.requeue_after);
  EXPECT_EQ(Pass().step, Step::kForceDeletePods);
}

TEST_F(ProfilingTest, APodLeavesANodeThatStaysNotReady) {
  Start();
  EXPECT_EQ(Pass().step, Step::kNone);
  world_.node_not_ready = true;
  EXPECT_EQ(Pass().step, Step::kNone);
  Advance(options_.node_patience / 2);
  world_.node_not_ready = false;  // it was only slow
  EXPECT_EQ(Pass().step, Step::kNone);
  world_.node_not_ready = true;
  EXPECT_EQ(Pass().step, Step::kNone);
  Advance(options_.node_patience / 2);
  EXPECT_EQ(Pass().step, Step::kNone);
  Advance(options_.node_patience / 2);
  const Decision decision = Pass();
  EXPECT_EQ(decision.step, Step::kDeletePods);
  ASSERT_THAT(decision.events, SizeIs(1));
  EXPECT_EQ(decision.events[0].reason, "NodeLost");
  EXPECT_THAT(Pass().events, IsEmpty());  // the cache does not show the deletion yet
  world_.pods.clear();
  world_.node_not_ready = false;
  EXPECT_EQ(Pass().step, Step::kCreatePod);  // at once: nothing has failed
}

TEST_F(ProfilingTest, AnInjectedSidecarDoesNotHideTheEnd) {
  Start();
  End(0, kLog);
  Json pod = world_.pods.front()->json();
  pod["status"]["phase"] = "Running";  // the sidecar runs on
  pod["status"]["containerStatuses"].insert(pod["status"]["containerStatuses"].begin(),
                                            {{"name", "istio-proxy"}, {"state", {{"running", Json::object()}}}});
  world_.pods = {std::make_shared<const kube::Object>(pod)};
  EXPECT_EQ(Pass().step, Step::kStore);
}

}  // namespace
}  // namespace medley::ops::profiling
