#include "operator/records/notices.h"

#include <gtest/gtest.h>

namespace medley::ops {
namespace {

using kube::Json;
using Kind = Notice::Kind;

std::optional<Notice> Of(const char* spec, const char* status = "{}") {
  return NoticeOf(
      kube::Object(Json{{"metadata", {{"name", "n"}}}, {"spec", Json::parse(spec)}, {"status", Json::parse(status)}}));
}

std::optional<Notice> Tainted(const std::string& key) {
  const Json spec = {{"taints", Json::array({{{"key", key}, {"effect", "NoSchedule"}}})}};
  return Of(spec.dump().c_str());
}

TEST(NoticesTest, TaintsOfCloudsAndAutoscalers) {
  for (const char* key : {"aws-node-termination-handler/spot-itn", "cloud.google.com/impending-node-termination",
                          "aws-node-termination-handler/rebalance-recommendation",
                          "remediator.kubernetes.azure.com/unschedulable", "example.com/ScheduledEvents"}) {
    const auto notice = Tainted(key);
    ASSERT_TRUE(notice.has_value()) << key;
    EXPECT_EQ(notice->kind, Kind::kSpot) << key;
    EXPECT_TRUE(notice->certain);
    EXPECT_EQ(notice->sign, std::string("taint ") + key);
  }
  for (const char* key :
       {"karpenter.sh/disrupted", "karpenter.sh/disruption", "ToBeDeletedByClusterAutoscaler",
        "aws-node-termination-handler/scheduled-maintenance", "aws-node-termination-handler/asg-lifecycle-termination",
        "node.cloudprovider.kubernetes.io/shutdown", "node.kubernetes.io/out-of-service"}) {
    const auto notice = Tainted(key);
    ASSERT_TRUE(notice.has_value()) << key;
    EXPECT_EQ(notice->kind, Kind::kDraining) << key;
    EXPECT_TRUE(notice->certain);
  }
}

TEST(NoticesTest, OrdinaryTaintsAreNotNotices) {
  for (const char* key : {"nvidia.com/gpu", "kubernetes.azure.com/scalesetpriority",
                          "DeletionCandidateOfClusterAutoscaler", "node.kubernetes.io/memory-pressure"}) {
    EXPECT_FALSE(Tainted(key).has_value()) << key;
  }
  EXPECT_FALSE(Of("{}").has_value());
}

TEST(NoticesTest, ACordonIsUncertainAndOtherSignsTakePrecedence) {
  const auto cordon = Of(R"({"unschedulable": true})");
  ASSERT_TRUE(cordon.has_value());
  EXPECT_FALSE(cordon->certain);
  EXPECT_EQ(ReasonOf(cordon->kind), Reason::kNodeDraining);
  const auto spot = Of(R"({"unschedulable": true, "taints": [
      {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
      {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}]})");
  ASSERT_TRUE(spot.has_value());
  EXPECT_TRUE(spot->certain);
  EXPECT_EQ(ReasonOf(spot->kind), Reason::kSpotNotice);
}

TEST(NoticesTest, AzureAnnouncesInConditions) {
  EXPECT_TRUE(Of("{}", R"({"conditions": [{"type": "PreemptScheduled", "status": "True"}]})"));
  EXPECT_FALSE(Of("{}", R"({"conditions": [{"type": "PreemptScheduled", "status": "False"}]})"));
  EXPECT_FALSE(Of("{}", R"({"conditions": [{"type": "FreezeScheduled", "status": "True"}]})"));
}

TEST(NoticesTest, ADeletedNodeAndADisruptedPod) {
  EXPECT_TRUE(
      NoticeOf(kube::Object(Json{{"metadata", {{"name", "n"}, {"deletionTimestamp", "2026-01-01T00:00:00Z"}}}})));
  const auto pod = PodNoticeOf(kube::Object(Json::parse(R"({"status": {"conditions": [
      {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]}})")));
  ASSERT_TRUE(pod.has_value());
  EXPECT_EQ(ReasonOf(pod->kind), Reason::kPodDisrupted);
  EXPECT_EQ(pod->sign, "DisruptionTarget: EvictionByEvictionAPI");
  EXPECT_FALSE(PodNoticeOf(kube::Object(Json::parse(R"({"status": {"conditions": [
      {"type": "DisruptionTarget", "status": "False"}]}})"))));
}

}  // namespace
}  // namespace medley::ops
