// Pods that cannot start: what the user reads, how long the job waits, and that a corrected template helps.
#include "operator/lifecycle/starting.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "common/base/utf8.h"
#include "operator/api/start_failure.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using kube::Json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A template for pods of this role; profilers have that of trainers.
Json Image(const char* role, const char* name) {
  const Json spec = {{"containers", Json::array({{{"name", "worker"}, {"image", name}}})}};
  return {{"template", {{role, {{"spec", spec}}}}}};
}

Json Waiting(const std::string& reason, const std::string& message = "") {
  return {{"reason", reason}, {"message", message}};
}

class StartingTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_THAT(cluster_.violations(), IsEmpty()); }
  // The job's pods of a role get an image that cannot be pulled.
  void Break(const std::string& reason = "ErrImagePull", const std::string& message = "manifest unknown",
             const char* role = "coordinator") {
    cluster_.SetSpec(Image(role, "registry/typo:1"));
    cluster_.images["registry/typo:1"] = Waiting(reason, message);
  }
  FakeCluster cluster_;
};

TEST_F(StartingTest, TheReasonIsPublishedWithinAMinute) {
  Break();
  cluster_.PassFor(base::seconds(60));
  EXPECT_EQ(cluster_.Reason(kPodsReadyCondition), "False/PodCannotStart");
  EXPECT_THAT(cluster_.Message(kPodsReadyCondition),
              HasSubstr("Pod adult-coordinator cannot start: container worker: ErrImagePull: manifest unknown. The job "
                        "waits for it until "));
  EXPECT_TRUE(cluster_.HasEvent("PodCannotStart", "ErrImagePull"));
}

TEST_F(StartingTest, TheJobFailsWhenItHasWaitedLongEnough) {
  Break();
  cluster_.PassFor(std::chrono::minutes(9));
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "");
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "True/PodCannotStart");
  EXPECT_THAT(cluster_.Message(kFailedCondition),
              HasSubstr("ErrImagePull: manifest unknown. It has been so for 10 min."));
  EXPECT_THAT(cluster_.pods(), IsEmpty()) << "a failed job holds no unit";
}

// The kubelet alternates between two reasons.
TEST_F(StartingTest, AnotherReasonDoesNotBeginTheWaitAgain) {
  Break();
  for (int minute = 0; minute < 12; ++minute) {
    cluster_.images["registry/typo:1"] = Waiting(minute % 2 == 0 ? "ImagePullBackOff" : "ErrImagePull");
    cluster_.PassFor(std::chrono::minutes(1));
  }
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "True/PodCannotStart");
}

TEST_F(StartingTest, ACorrectedTemplateReplacesPodsThatNeverStarted) {
  Break();
  cluster_.PassFor(std::chrono::minutes(5));
  cluster_.SetSpec({{"template", nullptr}});
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted") << cluster_.trace();
  EXPECT_EQ(cluster_.Reason(kPodsReadyCondition), "True/AllRunning");
  EXPECT_TRUE(cluster_.HasEvent("PodReplaced", "was edited"));
}

// Before there is a plan, profilers are the pods of the job.
TEST_F(StartingTest, AProfilerThatCannotStartIsReportedAndReplacedWhenTheTemplateIsEdited) {
  Break("CreateContainerConfigError", "secret \"key\" not found", "trainers");
  cluster_.PassFor(base::seconds(60));
  EXPECT_THAT(cluster_.Message(kPlannedCondition), HasSubstr("cannot start: container worker: "
                                                             "CreateContainerConfigError: secret \"key\" not found"));
  cluster_.SetSpec({{"template", nullptr}});
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted") << cluster_.trace();
}

TEST_F(StartingTest, AProfilerThatCannotStartEndsTheJobWithItsReason) {
  Break("CreateContainerConfigError", "secret \"key\" not found", "trainers");
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "True/ProfileFailed");
  EXPECT_THAT(cluster_.Message(kFailedCondition), HasSubstr("secret \"key\" not found"));
}

TEST_F(StartingTest, AnEditWhileTheJobTrainsReplacesNothing) {
  ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace();
  const auto before = cluster_.pod_names();
  Break();
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.pod_names(), before);
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted");
}

TEST_F(StartingTest, AJobThatTrainsGoesOnWithoutAPodThatCannotStart) {
  ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace();
  Break("ErrImagePull", "manifest unknown", "trainers");
  const std::string member = cluster_.stored_plan()->slots.front().member;
  cluster_.FailPod(member, 137);
  cluster_.PassFor(std::chrono::minutes(20), base::seconds(5));
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "");
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted");
  EXPECT_EQ(cluster_.Reason(kPodsReadyCondition), "False/PodCannotStart");
}

TEST_F(StartingTest, EveryReasonOfTheKubeletIsReportedAndEnds) {
  for (const char* reason : {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
                             "RegistryUnavailable", "ImageInspectError", "CreateContainerConfigError",
                             "CreateContainerError", "RunContainerError", "PostStartHookError", "SomethingNew"}) {
    FakeCluster cluster;
    cluster.SetSpec(Image("coordinator", "registry/typo:1"));
    cluster.images["registry/typo:1"] = Waiting(reason, "why");
    cluster.PassFor(base::seconds(60));
    EXPECT_THAT(cluster.Message(kPodsReadyCondition), HasSubstr(std::string(reason) + ": why"));
    ASSERT_TRUE(cluster.Settle()) << cluster.trace();
    EXPECT_EQ(cluster.Reason(kFailedCondition), "True/PodCannotStart") << reason;
  }
}

// A large image, or a volume that cannot be mounted: the status of the pod does not tell them apart.
TEST_F(StartingTest, SlowContainersAreReportedAndWaitedForLonger) {
  Break("ContainerCreating", "");
  cluster_.PassFor(std::chrono::minutes(1));
  EXPECT_EQ(cluster_.Reason(kPodsReadyCondition), "False/PodCannotStart");
  EXPECT_THAT(cluster_.Message(kPodsReadyCondition), HasSubstr("has been creating its containers since "));
  EXPECT_THAT(cluster_.Message(kPodsReadyCondition), HasSubstr("ConfigMap adult-spec"));
  cluster_.PassFor(std::chrono::minutes(55), base::seconds(5));
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "");
  cluster_.PassFor(std::chrono::minutes(10));
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "True/PodCannotStart");
}

TEST_F(StartingTest, AnImageThatWasPulledForLongMayFailOnce) {
  Break("ContainerCreating", "");
  cluster_.PassFor(std::chrono::minutes(30), base::seconds(5));
  cluster_.images["registry/typo:1"] = Waiting("ErrImagePull", "connection reset");
  cluster_.PassFor(std::chrono::minutes(5));
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "");
  cluster_.images.clear();
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted");
}

// A new operator has not heard from the coordinator yet when it looks at the pods.
TEST_F(StartingTest, ANewOperatorFailsNoJobThatTrains) {
  ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace();
  Break("ContainerCreating", "", "trainers");
  cluster_.FailPod(cluster_.stored_plan()->slots.front().member, 137);
  cluster_.PassFor(std::chrono::minutes(90), base::seconds(5));
  for (int i = 0; i < 3; ++i) {
    cluster_.RestartOperator();
    cluster_.PassFor(base::seconds(10));
  }
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "");
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted");
  EXPECT_THAT(cluster_.Message(kPodsReadyCondition), Not(HasSubstr("waits for it")));
}

TEST_F(StartingTest, AnEditThatIsRefusedReplacesNothing) {
  Break();
  cluster_.PassFor(base::seconds(30));
  const auto uid = [&] { return cluster_.pods().at("adult-coordinator").uid(); };
  const std::string before = uid();
  cluster_.SetSpec({{"template", {{"spec", {{"restartPolicy", "Always"}}}}}});
  cluster_.PassFor(base::seconds(30));
  EXPECT_EQ(uid(), before);
}

TEST_F(StartingTest, EachReasonOfAPodIsOneEvent) {
  Break();
  for (int i = 0; i < 8; ++i) {
    cluster_.images["registry/typo:1"] = Waiting(i % 2 == 0 ? "ImagePullBackOff" : "ErrImagePull");
    cluster_.PassFor(base::seconds(30));
  }
  EXPECT_EQ(std::count_if(cluster_.events().begin(), cluster_.events().end(),
                          [](const std::string& event) { return event.starts_with("PodCannotStart"); }),
            2);
}

TEST_F(StartingTest, AMessageOfAnyLengthAndEncodingIsBounded) {
  Break("ErrImagePull", std::string(100'000, 'x') + "\xe9\n");
  cluster_.PassFor(base::seconds(60));
  EXPECT_LT(cluster_.Message(kPodsReadyCondition).size(), 1000u);
  EXPECT_TRUE(base::IsUtf8(cluster_.Message(kPodsReadyCondition)));
}

TEST(StartFailureTest, ReadsEveryPlaceOfAPod) {
  const base::WallTime now = *base::ParseTime("2026-11-28T12:10:00Z");
  const auto failure = [&](const Json& status, const Json& spec = Json::object()) {
    Json pod = {{"metadata", {{"creationTimestamp", "2026-11-28T12:00:00Z"}}}, {"spec", spec}, {"status", status}};
    const auto found = StartFailureOf(kube::Object(pod), now);
    return found ? found->reason + "|" + found->message : "";
  };
  const auto container = [](const char* name, const Json& state) { return Json{{"name", name}, {"state", state}}; };
  const Json running = {{"running", {{"startedAt", "2026-11-28T12:01:00Z"}}}};
  const Json bad = {{"waiting", Waiting("ErrImagePull", "no")}};
  EXPECT_EQ(failure({{"phase", "Pending"}}), "");
  EXPECT_EQ(failure({{"phase", "Pending"}, {"containerStatuses", Json::array({container("worker", bad)})}}),
            "ErrImagePull|container worker: ErrImagePull: no");
  EXPECT_EQ(failure({{"phase", "Pending"}, {"initContainerStatuses", Json::array({container("wait", bad)})}}),
            "ErrImagePull|container wait: ErrImagePull: no");
  const Json sidecar =
      Json::array({container("worker", {{"waiting", Waiting("PodInitializing")}}), container("log", bad)});
  EXPECT_EQ(failure({{"phase", "Pending"}, {"containerStatuses", sidecar}}),
            "ErrImagePull|container log: ErrImagePull: no");
  EXPECT_EQ(failure({{"phase", "Running"},
                     {"containerStatuses", Json::array({container("worker", running), container("log", bad)})}}),
            "")
      << "the worker runs";
  const Json unbound = {{"type", "PodScheduled"},
                        {"status", "False"},
                        {"reason", "Unschedulable"},
                        {"message", "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."}};
  EXPECT_EQ(failure({{"phase", "Pending"}, {"conditions", Json::array({unbound})}}),
            "Unschedulable|it has no node: Unschedulable: 0/3 nodes are available: pod has unbound immediate "
            "PersistentVolumeClaims.");
  const Json spec = {{"nodeName", "n1"},
                     {"volumes", Json::array({{{"name", "d"}, {"persistentVolumeClaim", {{"claimName", "rows"}}}}})}};
  EXPECT_THAT(failure({{"phase", "Pending"}}, spec), HasSubstr("ContainerCreating|node n1 has been creating"));
  EXPECT_THAT(failure({{"phase", "Pending"}}, spec), HasSubstr("(claim rows)"));
  EXPECT_EQ(failure({{"phase", "Failed"}}, spec), "");
  // Hostile values of another kind.
  EXPECT_EQ(failure({{"phase", "Pending"}, {"containerStatuses", "x"}}), "");
  EXPECT_EQ(failure({{"phase", "Pending"}, {"containerStatuses", Json::array({1, "x", nullptr})}}), "");
}

}  // namespace
}  // namespace medley::ops::lifecycle
