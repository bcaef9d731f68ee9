#include "operator/api/worker_state.h"

#include <gtest/gtest.h>

#include "operator/api/resources.h"

namespace medley::ops {
namespace {

using kube::Json;

kube::Object Pod(const std::string& role, const std::string& phase, const Json& worker_state) {
  kube::Object pod(kube::resources::Pods(), {"n", "p"});
  pod.SetLabel(kRoleLabel, role);
  pod.mutable_json()["status"] = {
      {"phase", phase},
      {"containerStatuses",
       Json::array({{{"name", "istio-proxy"}, {"restartCount", 5}, {"state", {{"terminated", {{"exitCode", 9}}}}}},
                    {{"name", "worker"}, {"restartCount", 2}, {"state", worker_state}}})}};
  return pod;
}

Json Exit(int code) { return {{"terminated", {{"exitCode", code}}}}; }

TEST(WorkerStateTest, OnlyTheWorkerCounts) {
  const kube::Object running = Pod("trainer", "Running", {{"running", Json::object()}});
  EXPECT_FALSE(WorkerHasEnded(running));
  EXPECT_EQ(ExitCode(running), -1);
  EXPECT_EQ(RestartCount(running), 2);

  EXPECT_TRUE(WorkerHasEnded(Pod("trainer", "Running", Exit(3))));
  EXPECT_FALSE(WorkerHasSucceeded(Pod("trainer", "Running", Exit(3))));
  EXPECT_EQ(ExitCode(Pod("trainer", "Running", Exit(3))), 3);
  EXPECT_TRUE(WorkerHasSucceeded(Pod("profiler", "Running", Exit(0))));
  EXPECT_TRUE(WorkerHasSucceeded(Pod("profiler", "Failed", Exit(0))));  // a sidecar has failed
}

TEST(WorkerStateTest, TheKubeletStartsACoordinatorAgain) {
  EXPECT_FALSE(WorkerHasEnded(Pod("coordinator", "Running", Exit(1))));
  EXPECT_TRUE(WorkerHasEnded(Pod("coordinator", "Running", Exit(0))));
  EXPECT_TRUE(WorkerHasEnded(Pod("coordinator", "Failed", Exit(1))));  // its node was lost
}

TEST(WorkerStateTest, MissingOrMalformedEndsAreIgnored) {
  kube::Object pod;
  EXPECT_FALSE(WorkerHasEnded(pod));
  EXPECT_EQ(ExitCode(pod), -1);
  EXPECT_EQ(RestartCount(pod), 0);
  pod.mutable_json()["status"] = {{"containerStatuses", "x"}};
  EXPECT_FALSE(WorkerHasEnded(pod));
  pod.mutable_json()["status"] = {{"containerStatuses", Json::array({1, {{"name", 7}}, {{"name", "worker"}}})}};
  EXPECT_FALSE(WorkerHasEnded(pod));
  pod.mutable_json()["status"] = {{"phase", "Failed"}, {"reason", "Evicted"}};
  EXPECT_TRUE(WorkerHasEnded(pod));
  EXPECT_FALSE(WorkerHasSucceeded(pod));
  kube::Object killed = Pod("trainer", "Failed", {{"terminated", {{"exitCode", 0}, {"signal", 11}}}});
  EXPECT_FALSE(WorkerHasSucceeded(killed));
}

}  // namespace
}  // namespace medley::ops
