#include "operator/lifecycle/pod_state.h"

#include <gtest/gtest.h>

namespace medley::ops {
namespace {

kube::Object PodIn(const std::string& phase) {
  kube::Object pod(kube::resources::Pods(), {"team", "adult-0-cpu-0"});
  const kube::Json waits = {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}};
  pod.mutable_json()["status"] = {{"conditions", kube::Json::array({waits})}};
  if (!phase.empty()) pod.mutable_json()["status"]["phase"] = phase;
  return pod;
}

TEST(PodStateTest, OnlyAPodThatNeverRanIsUnschedulable) {
  EXPECT_TRUE(IsUnschedulable(PodIn("")));
  EXPECT_TRUE(IsUnschedulable(PodIn("Pending")));
  for (const char* phase : {"Running", "Succeeded", "Failed"}) EXPECT_FALSE(IsUnschedulable(PodIn(phase))) << phase;
}

}  // namespace
}  // namespace medley::ops
