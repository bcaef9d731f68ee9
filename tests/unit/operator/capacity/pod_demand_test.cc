#include "operator/capacity/pod_demand.h"

#include <gtest/gtest.h>

namespace medley::ops {
namespace {

using kube::Json;

kube::Object Pod(const char* spec) { return kube::Object(Json{{"spec", Json::parse(spec)}}); }

Amounts Requests(const char* spec) { return AmountsOf(Pod(spec)).requests; }

TEST(AmountsTest, CpuIsCountedInMillicoresAndTheRestRoundedUp) {
  EXPECT_EQ(ReadAmount("cpu", "100m"), 100);
  EXPECT_EQ(ReadAmount("requests.cpu", "0.1"), 100);
  EXPECT_EQ(ReadAmount("cpu", "1500u"), 2);
  EXPECT_EQ(ReadAmount("memory", "1Ki"), 1024);
  EXPECT_EQ(ReadAmount("memory", "100m"), 1);
  EXPECT_EQ(ReadAmount("nvidia.com/gpu", 2), 2);
  EXPECT_EQ(ReadAmount("cpu", "much"), 0);
  EXPECT_EQ(ReadAmounts(WriteAmounts({{"cpu", 1234}, {"memory", 77}})), (Amounts{{"cpu", 1234}, {"memory", 77}}));
}

TEST(PodDemandTest, TheLargestInitContainerCounts) {
  EXPECT_EQ(Requests(R"({
    "initContainers": [{"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}},
                       {"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}],
    "containers": [{"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}},
                   {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]})"),
            (Amounts{{"cpu", 3000}, {"memory", 2LL << 30}}));
  EXPECT_EQ(Requests(R"({"initContainers": [{"resources": {"requests": {"cpu": "5"}}}],
    "containers": [{"resources": {"requests": {"cpu": "2"}}}]})"),
            (Amounts{{"cpu", 5000}}));
}

// The order matters: an init container runs beside the sidecars before it, not those after it.
TEST(PodDemandTest, SidecarsRunBesideWhatFollowsThem) {
  EXPECT_EQ(Requests(R"({
    "initContainers": [{"resources": {"requests": {"cpu": "4"}}},
                       {"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
                       {"resources": {"requests": {"cpu": "6"}}}],
    "containers": [{"resources": {"requests": {"cpu": "2"}}}]})"),
            (Amounts{{"cpu", 7000}}));
  EXPECT_EQ(Requests(R"({
    "initContainers": [{"resources": {"requests": {"cpu": "4"}}},
                       {"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}],
    "containers": [{"resources": {"requests": {"cpu": "5"}}}]})"),
            (Amounts{{"cpu", 6000}}));
}

TEST(PodDemandTest, OverheadPodLevelResourcesAndLimits) {
  const PodAmounts amounts = AmountsOf(Pod(R"({
    "overhead": {"cpu": "250m", "memory": "64Mi"},
    "resources": {"requests": {"cpu": "3"}},
    "containers": [{"resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}}},
                   {"resources": {"requests": {"cpu": "1"}}}]})"));
  EXPECT_EQ(amounts.requests, (Amounts{{"cpu", 3250}, {"memory", 64LL << 20}, {"nvidia.com/gpu", 1}}));
  EXPECT_EQ(amounts.limits, (Amounts{{"cpu", 1250}, {"nvidia.com/gpu", 1}}));
}

TEST(PodDemandTest, DuringAResizeTheAllocatedAmountCounts) {
  kube::Object pod = Pod(R"({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]})");
  pod.mutable_json()["status"] =
      Json::parse(R"({"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "3"}}]})");
  EXPECT_EQ(AmountsOf(pod).requests, (Amounts{{"cpu", 3000}}));
}

TEST(PodDemandTest, LimitRangesSetMissingRequestsAndLimits) {
  kube::Object pod = Pod(R"({"containers": [{"resources": {"requests": {"cpu": "2"}}}, {}]})");
  ApplyLimitRange(kube::Object(Json::parse(R"({"spec": {"limits": [
      {"type": "Pod", "max": {"cpu": "9"}},
      {"type": "Container", "default": {"memory": "1Gi"}, "defaultRequest": {"cpu": "500m", "memory": "512Mi"}}]}})")),
                  pod);
  const PodAmounts amounts = AmountsOf(pod);
  EXPECT_EQ(amounts.requests, (Amounts{{"cpu", 2500}, {"memory", 1LL << 30}}));
  EXPECT_EQ(amounts.limits, (Amounts{{"memory", 2LL << 30}}));
}

}  // namespace
}  // namespace medley::ops
