// Running: members, the coordinator, restarts, and the plan that the coordinator is given.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "operator/api/resources.h"
#include "operator/builders/pods.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using kube::Json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class RunningTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_THAT(cluster_.violations(), IsEmpty()); }
  FakeCluster cluster_ = FakeCluster::Training();
};

struct EndCase {
  const char* name;
  Json status;
  const char* event;
};

class MemberEndTest : public testing::TestWithParam<EndCase> {};

TEST_P(MemberEndTest, IsReplacedUnderItsName) {
  FakeCluster cluster = FakeCluster::Training();
  const std::string before = cluster.Digest();
  cluster.SetPodStatus("adult-0-a-1", GetParam().status);
  EXPECT_THAT(cluster.Pass().actions, Contains("delete pods adult-0-a-1"));
  EXPECT_TRUE(cluster.HasEvent("MemberFailed", GetParam().event)) << cluster.trace();
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Digest(), before);
  EXPECT_EQ(cluster.stored_plan()->plan.generation, 1);
  EXPECT_EQ(cluster.status().restarts, 0);
}

Json Terminated(const Json& state) {
  return {{"phase", "Failed"},
          {"containerStatuses", Json::array({{{"name", "worker"}, {"state", {{"terminated", state}}}}})}};
}

INSTANTIATE_TEST_SUITE_P(
    All, MemberEndTest,
    testing::Values(EndCase{"OutOfMemory", Terminated({{"reason", "OOMKilled"}, {"exitCode", 137}}),
                            "ran out of memory"},
                    EndCase{"Signal", Terminated({{"signal", 11}, {"exitCode", 0}}), "was killed by signal 11"},
                    EndCase{"SignalAsAShellSays", Terminated({{"exitCode", 143}}), "was killed by signal 15"},
                    EndCase{"ExitCode", Terminated({{"exitCode", 3}}), "failed with exit code 3: segmentation fault"},
                    EndCase{"NoState", {{"phase", "Failed"}}, "pod adult-0-a-1 failed and is replaced"}),
    [](const auto& each) { return each.param.name; });

// An injected sidecar stands first in the list and runs on, so the phase stays Running.
Json BesideSidecar(const Json& worker_state) {
  return {{"phase", "Running"},
          {"containerStatuses", Json::array({{{"name", "istio-proxy"}, {"state", {{"running", Json::object()}}}},
                                             {{"name", "worker"}, {"state", worker_state}}})}};
}

TEST_F(RunningTest, ADeadWorkerIsSeenBesideItsSidecar) {
  cluster_.SetPodStatus("adult-0-a-1", BesideSidecar({{"terminated", {{"exitCode", 139}}}}));
  EXPECT_THAT(cluster_.Pass().actions, Contains("delete pods adult-0-a-1"));
  EXPECT_TRUE(cluster_.HasEvent("MemberFailed", "was killed by signal 11")) << cluster_.trace();
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted");
}

TEST_F(RunningTest, ACoordinatorThatEndsBesideItsSidecarEndsTheJob) {
  cluster_.SetPodStatus("adult-coordinator", BesideSidecar({{"terminated", {{"exitCode", 0}}}}));
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.Reason(kCompleteCondition), "True/TrainingComplete");
  EXPECT_THAT(cluster_.pod_names(), IsEmpty());  // sidecars hold resources
}

TEST_F(RunningTest, ACoordinatorThatIsStartedAgainInPlaceHasNotEnded) {
  cluster_.SetPodStatus("adult-coordinator", BesideSidecar({{"terminated", {{"exitCode", 1}}}}));
  EXPECT_THAT(cluster_.Pass().actions, testing::Each(Not(HasSubstr("delete"))));
}

TEST_F(RunningTest, AMemberThatFailsAgainAndAgainWithoutProgressEndsTheJob) {
  cluster_.SetSpec({{"runPolicy", {{"backoffLimit", 2}}}});
  for (int i = 0; i < 4; ++i) {
    cluster_.FailPod("adult-0-a-1", 1);
    ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  }
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "True/BackoffLimitExceeded");
  EXPECT_THAT(cluster_.Message(kFailedCondition), HasSubstr("pod adult-0-a-1 failed 4 times"));
}

TEST_F(RunningTest, ProgressForgetsEarlierFailures) {
  cluster_.SetSpec({{"runPolicy", {{"backoffLimit", 2}}}});
  for (int i = 0; i < 6; ++i) {
    cluster_.coordinator().samples_done += 100;
    cluster_.FailPod("adult-0-a-1", 1);
    ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  }
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "");
}

TEST_F(RunningTest, TheAddressOfAnIpv6CoordinatorHasBrackets) {
  cluster_.SetPodStatus("adult-coordinator", {{"podIP", "fd00::7"}});
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(CoordinatorOf(cluster_.pods().at("adult-0-a-1")), "[fd00::7]:7070");
}

TEST_F(RunningTest, MembersAreNotCreatedFromAStaleCache) {
  cluster_.DeletePod("adult-0-a-1");
  cluster_.cache_is_current = false;
  const PassLog pass = cluster_.Pass();
  EXPECT_THAT(pass.actions, Not(Contains(HasSubstr("create pods"))));
  EXPECT_EQ(pass.requeue_after, base::milliseconds(200));
  cluster_.cache_is_current = true;
  EXPECT_THAT(cluster_.Pass().actions, Contains("create pods adult-0-a-1"));
}

TEST_F(RunningTest, AQuotaThatRefusesAPodIsNotAnError) {
  cluster_.DeletePod("adult-0-a-1");
  cluster_.failures["create pods"] = base::PermissionDenied("exceeded quota: q, requested: cpu=1");
  const PassLog pass = cluster_.Pass();
  EXPECT_THAT(pass.status, base::IsOk());
  EXPECT_EQ(pass.requeue_after, base::seconds(5));
  EXPECT_TRUE(cluster_.HasEvent("FailedCreatePod", "exceeded quota"));
  cluster_.Advance(base::seconds(61));  // refused for so long, it is planned without that unit
  cluster_.Pass();
  EXPECT_EQ(cluster_.last_request().resources.front().limit, 1);
}

TEST_F(RunningTest, APodOfAnotherOwnerIsReported) {
  cluster_.DeletePod("adult-0-a-1");
  cluster_.failures["create pods"] = base::AlreadyExists("pod");
  cluster_.failures["get Pod"] = base::NotFound("pod");
  EXPECT_THAT(cluster_.Pass().status, base::IsOk());  // it has just been deleted
  const JobInput input = cluster_.Input();
  const World world = cluster_.Observe();
  const kube::Object theirs(Json::parse(
      R"({"metadata": {"name": "adult-0-a-1", "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "x",
          "controller": true}]}})"));
  const Respond respond = [&](const Action& action) {
    const bool gets = std::holds_alternative<GetObject>(action);
    return gets ? absl::StatusOr<kube::Object>(theirs) : cluster_.Carry(action);
  };
  const Decision decision = Decide(input, world, cluster_.memory(), respond, cluster_.options);
  EXPECT_THAT(decision.status, base::StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("ReplicaSet web")));
}

TEST_F(RunningTest, ALostCoordinatorRestartsTheJobUnderItsPlan) {
  cluster_.DeletePod("adult-coordinator");
  cluster_.StepCluster();
  EXPECT_THAT(cluster_.Pass().actions,
              ElementsAre("save plan", "patch status", "delete pods adult-0-a-0, adult-0-a-1"));
  EXPECT_EQ(cluster_.Reason(kRestartingCondition), "True/CoordinatorLost");
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.status().restarts, 1);
  EXPECT_EQ(cluster_.Reason(kRestartingCondition), "False/Restarted");
  EXPECT_EQ(cluster_.pods().size(), 3u);
  EXPECT_EQ(cluster_.stored_plan()->plan.generation, 1);
}

struct CoordinatorCase {
  const char* name;
  std::function<void(FakeCluster&)> happens;
  const char* condition;
  const char* reason;
  int restarts;
};

class CoordinatorTest : public testing::TestWithParam<CoordinatorCase> {};

TEST_P(CoordinatorTest, WhatBecameOfTheCoordinator) {
  FakeCluster cluster = FakeCluster::Training();
  GetParam().happens(cluster);
  cluster.Pass();
  EXPECT_EQ(cluster.Reason(GetParam().condition), GetParam().reason) << cluster.trace();
  EXPECT_EQ(cluster.status().restarts, GetParam().restarts);
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

Json RestartedInPlace(int count, int exit_code) {
  return {{"containerStatuses", Json::array({{{"name", "worker"},
                                              {"restartCount", count},
                                              {"lastState", {{"terminated", {{"exitCode", exit_code}}}}}}})}};
}

INSTANTIATE_TEST_SUITE_P(
    All, CoordinatorTest,
    testing::Values(CoordinatorCase{"Succeeded", [](FakeCluster& c) { c.FailPod("adult-coordinator", 0); },
                                    kCompleteCondition, "True/TrainingComplete", 0},
                    CoordinatorCase{"Failed", [](FakeCluster& c) { c.FailPod("adult-coordinator", 1); },
                                    kRestartingCondition, "True/CoordinatorFailed", 1},
                    CoordinatorCase{"FailedForGood", [](FakeCluster& c) { c.FailPod("adult-coordinator", 2); },
                                    kFailedCondition, "True/TrainingFailed", 0},
                    CoordinatorCase{"RestartedInPlaceTwice",
                                    [](FakeCluster& c) { c.SetPodStatus("adult-coordinator", RestartedInPlace(2, 1)); },
                                    kRestartingCondition, "False/Restarted", 2},
                    CoordinatorCase{"RestartedInPlaceForGood",
                                    [](FakeCluster& c) { c.SetPodStatus("adult-coordinator", RestartedInPlace(1, 2)); },
                                    kFailedCondition, "True/TrainingFailed", 0},
                    CoordinatorCase{"RestartedTooOften",
                                    [](FakeCluster& c) { c.SetPodStatus("adult-coordinator", RestartedInPlace(7, 1)); },
                                    kFailedCondition, "True/BackoffLimitExceeded", 7},
                    CoordinatorCase{"TrainingComplete",
                                    [](FakeCluster& c) { c.coordinator().phase = JobPhase::kComplete; },
                                    kCompleteCondition, "True/TrainingComplete", 0},
                    CoordinatorCase{"TrainingFailed", [](FakeCluster& c) { c.coordinator().phase = JobPhase::kFailed; },
                                    kFailedCondition, "True/TrainingFailed", 0},
                    CoordinatorCase{"TrainingFailedRetryable",
                                    [](FakeCluster& c) {
                                      c.coordinator().phase = JobPhase::kFailed;
                                      c.coordinator().retryable = true;
                                    },
                                    kRestartingCondition, "True/TrainingFailed", 1}),
    [](const auto& each) { return each.param.name; });

TEST_F(RunningTest, ARestartInPlaceIsCountedOnceAlsoByTheNextOperator) {
  cluster_.SetPodStatus("adult-coordinator", RestartedInPlace(2, 1));
  cluster_.Pass();
  cluster_.RestartOperator();
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.status().restarts, 2);
}

TEST_F(RunningTest, AnOperatorThatStartsDoesNotSendThePlanAgain) {
  cluster_.RestartOperator();
  cluster_.Pass();  // connects
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.plans_asked(), 1);
  EXPECT_EQ(cluster_.memory().running.sent_generation, 1);
}

// The coordinator has recovered into a generation that the plan's number does not reach.
TEST_F(RunningTest, APlanTakesANewerNumberThanARecovery) {
  cluster_.coordinator().next_generation = 0;
  cluster_.coordinator().generation = 5;
  cluster_.memory().running.sent_to.clear();
  cluster_.failures["send plan 1"] = base::FailedPrecondition("generation 5 is in force");
  EXPECT_THAT(cluster_.Pass().actions, Contains("save plan"));
  EXPECT_EQ(cluster_.stored_plan()->plan.generation, 6);
}

TEST_F(RunningTest, ANewerLeaderEndsThePass) {
  cluster_.leader_term = 3;
  cluster_.coordinator().leader_term = 4;
  cluster_.DeletePod("adult-0-a-1");
  const PassLog pass = cluster_.Pass();
  EXPECT_THAT(pass.status, base::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("term 3")));
  EXPECT_THAT(pass.actions, Not(Contains(HasSubstr("create pods"))));
}

TEST_F(RunningTest, PodsThatAreNotInThePlanAreDeletedOnceItIsInForce) {
  cluster_.noticed_nodes = {"a-0"};
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.pods().size(), 3u);
  EXPECT_EQ(cluster_.stored_plan()->plan.generation, 2);
  EXPECT_FALSE(cluster_.pod_names().contains("adult-0-a-0"));
}

TEST_F(RunningTest, ASlowTrainerThatStandsByIsNotAFailure) {
  GenerationSwitch done;
  done.from_generation = 1;
  done.to_generation = 2;
  done.reason = "Left out trainer adult-0-a-1: a step took it 12.1 ms, usually 3.0 ms.";
  done.cause = kMemberSlow;
  cluster_.coordinator().generation = 2;
  cluster_.coordinator().switches = {done};
  const size_t pods = cluster_.pods().size();
  EXPECT_EQ(cluster_.Pass().events.size(), 1u);
  EXPECT_TRUE(cluster_.HasEvent("TrainerLeftOut", done.reason));
  done.from_generation = 2;
  done.to_generation = 3;
  done.reason = "Took trainer adult-0-a-1 back: a step would take it 3.1 ms, usually 3.0 ms.";
  done.cause = kStandbyReturned;
  cluster_.coordinator().generation = 3;
  cluster_.coordinator().switches.push_back(done);
  EXPECT_EQ(cluster_.Pass().events.size(), 1u);
  EXPECT_TRUE(cluster_.HasEvent("TrainerReturned", done.reason));
  EXPECT_EQ(cluster_.pods().size(), pods);
  ASSERT_EQ(cluster_.status().rescales.size(), 2u);
  EXPECT_EQ(cluster_.status().rescales[0].reason, "MemberSlow");
}

TEST_F(RunningTest, ASwitchIsRecordedOnce) {
  GenerationSwitch done;
  done.from_generation = 1;
  done.to_generation = 2;
  done.reason = "adult-0-a-1 was lost";
  done.cause = "MemberLost";
  done.recovery = true;
  cluster_.coordinator().generation = 2;
  cluster_.coordinator().switches = {done};
  EXPECT_EQ(cluster_.Pass().events.size(), 1u);
  EXPECT_TRUE(cluster_.HasEvent("Recovered", "generation 1 -> 2 (adult-0-a-1 was lost)"));
  cluster_.RestartOperator();
  ASSERT_TRUE(cluster_.Settle());
  EXPECT_EQ(cluster_.status().rescales.size(), 1u);
}

}  // namespace
}  // namespace medley::ops::lifecycle
