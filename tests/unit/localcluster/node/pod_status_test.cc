#include "localcluster/node/pod_status.h"

#include <gtest/gtest.h>

#include "kube/json_access.h"

namespace medley::localcluster {
namespace {

using State = ContainerView::State;
const base::WallTime kNow{base::seconds(1'700'000'000)};

ContainerView Waiting() {
  ContainerView view;
  view.name = "c";
  view.image = "img";
  return view;
}
ContainerView Running() {
  ContainerView view = Waiting();
  view.state = State::kRunning;
  view.started_at = kNow;
  view.ready = true;
  return view;
}
ContainerView Ended(int code, int signal = 0) {
  ContainerView view = Waiting();
  view.state = State::kTerminated;
  view.termination = Termination{code, signal, code == 0 ? "Completed" : "Error", "", kNow, kNow, "process://x"};
  return view;
}
ContainerView BackingOff() {
  ContainerView view = Ended(1);
  view.state = State::kWaiting;
  view.waiting_reason = "CrashLoopBackOff";
  view.last = std::exchange(view.termination, std::nullopt);
  view.restarts = 1;
  return view;
}
std::string Phase(RestartPolicy policy, std::vector<ContainerView> containers, bool ended = false) {
  PodView view;
  view.containers = std::move(containers);
  view.ended = ended;
  return PodPhase(policy, view);
}
const kube::Json& Condition(const kube::Json& status, const std::string& type) {
  static const kube::Json kNone;
  for (const kube::Json& condition : kube::GetArray(status, "conditions")) {
    if (kube::GetString(condition, "type") == type) return condition;
  }
  return kNone;
}

TEST(PodPhaseTest, FollowsContainersAndPolicy) {
  using enum RestartPolicy;
  EXPECT_EQ(Phase(kAlways, {Waiting()}), "Pending");
  EXPECT_EQ(Phase(kAlways, {Running(), Waiting()}), "Pending");
  EXPECT_EQ(Phase(kAlways, {Running()}), "Running");
  EXPECT_EQ(Phase(kAlways, {Ended(0)}), "Running");
  EXPECT_EQ(Phase(kAlways, {BackingOff()}), "Running");
  EXPECT_EQ(Phase(kOnFailure, {Ended(0)}), "Succeeded");
  EXPECT_EQ(Phase(kOnFailure, {Ended(1)}), "Running");
  EXPECT_EQ(Phase(kNever, {Ended(0), Ended(0)}), "Succeeded");
  EXPECT_EQ(Phase(kNever, {Ended(0), Ended(3)}), "Failed");
  EXPECT_EQ(Phase(kNever, {Running(), Ended(3)}), "Running");
  EXPECT_EQ(Phase(kAlways, {Ended(143)}, true), "Failed");
  EXPECT_EQ(Phase(kAlways, {Ended(0)}, true), "Succeeded");
  EXPECT_EQ(Phase(kAlways, {Waiting()}, true), "Failed");
}

TEST(PodPhaseTest, InitContainersComeFirst) {
  PodView view;
  view.containers = {Waiting()};
  view.init_containers = {Running()};
  EXPECT_EQ(PodPhase(RestartPolicy::kNever, view), "Pending");
  view.init_containers = {Ended(1)};
  EXPECT_EQ(PodPhase(RestartPolicy::kNever, view), "Failed");
  EXPECT_EQ(PodPhase(RestartPolicy::kOnFailure, view), "Pending");
  view.init_containers = {Ended(0)};
  view.containers = {Running()};
  EXPECT_EQ(PodPhase(RestartPolicy::kNever, view), "Running");
}

TEST(PodStatusTest, RunningAndReady) {
  PodView view;
  view.containers = {Running()};
  view.pod_ip = "127.64.0.9";
  view.host_ip = "127.0.0.1";
  view.start_time = kNow;
  const kube::Json status = PodStatus(kube::Object(kube::Json::object()), view, kNow);
  EXPECT_EQ(status["phase"], "Running");
  EXPECT_EQ(status["podIP"], "127.64.0.9");
  EXPECT_EQ(status["podIPs"][0]["ip"], "127.64.0.9");
  EXPECT_EQ(status["startTime"], base::FormatTime(kNow));
  for (const char* type : {"PodScheduled", "Initialized", "ContainersReady", "Ready"}) {
    EXPECT_EQ(Condition(status, type)["status"], "True") << type;
  }
  EXPECT_EQ(status["containerStatuses"][0]["state"]["running"]["startedAt"], base::FormatTime(kNow));
}

TEST(PodStatusTest, TerminatedSaysHow) {
  PodView view;
  view.containers = {Ended(137, 9)};
  view.ended = true;
  view.containers[0].termination->reason = "OOMKilled";
  const kube::Json status = PodStatus(kube::Object(kube::Json{{"spec", {{"restartPolicy", "Never"}}}}), view, kNow);
  EXPECT_EQ(status["phase"], "Failed");
  const kube::Json& end = status["containerStatuses"][0]["state"]["terminated"];
  EXPECT_EQ(end["exitCode"], 137);
  EXPECT_EQ(end["signal"], 9);
  EXPECT_EQ(end["reason"], "OOMKilled");
  EXPECT_EQ(Condition(status, "Ready")["status"], "False");
}

TEST(PodStatusTest, TransitionTimesChangeOnlyWithTheStatusAndForeignConditionsStay) {
  PodView view;
  view.containers = {Running()};
  kube::Object pod(
      kube::Json{{"status", {{"conditions", {{{"type", "Custom"}, {"status", "True"}}}}, {"qosClass", "Burstable"}}}});
  pod.mutable_json()["status"] = PodStatus(pod, view, kNow);
  EXPECT_EQ(PodStatus(pod, view, kNow + base::seconds(60)), pod.At("/status"));
  view.containers[0].ready = false;
  const kube::Json changed = PodStatus(pod, view, kNow + base::seconds(60));
  EXPECT_EQ(Condition(changed, "Ready")["lastTransitionTime"], base::FormatTime(kNow + base::seconds(60)));
  EXPECT_EQ(Condition(changed, "Initialized")["lastTransitionTime"], base::FormatTime(kNow));
  EXPECT_EQ(Condition(changed, "Custom")["status"], "True");
  EXPECT_EQ(changed["qosClass"], "Burstable");
}

TEST(PodStatusTest, ReasonOfTheWholePod) {
  PodView view;
  view.containers = {Ended(143, 15)};
  view.ended = true;
  view.reason = "DeadlineExceeded";
  view.message = "too long";
  const kube::Json status = PodStatus(kube::Object(kube::Json::object()), view, kNow);
  EXPECT_EQ(status["phase"], "Failed");
  EXPECT_EQ(status["reason"], "DeadlineExceeded");
}

TEST(ViewFromStatusTest, RoundTripAndForgottenRunning) {
  PodView view;
  view.containers = {BackingOff()};
  const kube::Json status = PodStatus(kube::Object(kube::Json::object()), view, kNow);
  const kube::Json spec = {{"name", "c"}, {"image", "img"}};
  const ContainerView back = ViewFromStatus(spec, status["containerStatuses"], kNow);
  EXPECT_EQ(back.restarts, 1);
  ASSERT_TRUE(back.last.has_value());
  EXPECT_EQ(back.last->exit_code, 1);

  view.containers = {Running()};
  const kube::Json running = PodStatus(kube::Object(kube::Json::object()), view, kNow);
  const ContainerView lost = ViewFromStatus(spec, running["containerStatuses"], kNow);
  EXPECT_EQ(lost.state, State::kTerminated);
  EXPECT_EQ(lost.termination->exit_code, 137);
  EXPECT_EQ(lost.termination->reason, "ContainerStatusUnknown");
}

TEST(RestartPolicyTest, WhatIsStartedAgain) {
  Termination good, bad;
  bad.exit_code = 1;
  EXPECT_TRUE(ShouldRestart(RestartPolicy::kAlways, good));
  EXPECT_FALSE(ShouldRestart(RestartPolicy::kOnFailure, good));
  EXPECT_TRUE(ShouldRestart(RestartPolicy::kOnFailure, bad));
  EXPECT_FALSE(ShouldRestart(RestartPolicy::kNever, bad));
  EXPECT_EQ(RestartPolicyOf(kube::Object(kube::Json::object())), RestartPolicy::kAlways);
}

}  // namespace
}  // namespace medley::localcluster
