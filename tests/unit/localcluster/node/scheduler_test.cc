#include "localcluster/node/scheduler.h"

#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"

namespace medley::localcluster {
namespace {

kube::Json PodSpec(const std::string& requests) {
  return {{"containers", {{{"name", "c"}, {"resources", {{"requests", kube::Json::parse(requests)}}}}}}};
}
kube::ObjectPtr Bound(const std::string& name, const std::string& node, const std::string& requests,
                      const std::string& phase = "Running") {
  kube::Json spec = PodSpec(requests);
  spec["nodeName"] = node;
  return std::make_shared<const kube::Object>(
      kube::Json{{"metadata", {{"name", name}}}, {"spec", spec}, {"status", {{"phase", phase}}}});
}
kube::Object Pending(const std::string& requests, kube::Json selector = kube::Json::object()) {
  kube::Json spec = PodSpec(requests);
  spec["nodeSelector"] = std::move(selector);
  return kube::Object(kube::Json{{"metadata", {{"name", "new"}}}, {"spec", spec}});
}

const std::vector<VirtualNode>& Nodes() {
  static const std::vector<VirtualNode> nodes = {
      {"cpu-a", {{"pool", "cpu"}}, {{"cpu", "4"}, {"memory", "8Gi"}}},
      {"cpu-b", {{"pool", "cpu"}}, {{"cpu", "4"}, {"memory", "8Gi"}}},
      {"gpu-a", {{"pool", "gpu"}}, {{"cpu", "8"}, {"nvidia.com/gpu", "2"}}},
  };
  return nodes;
}
Placement Place(const kube::Object& pod, const std::vector<kube::ObjectPtr>& bound = {}) {
  const auto rooms = RoomOf(Nodes(), bound);
  EXPECT_THAT(rooms, base::IsOk());
  return PlacePod(pod, *rooms);
}

TEST(SchedulerTest, SelectorThenFewestPods) {
  EXPECT_EQ(Place(Pending("{}", {{"pool", "gpu"}})).node, "gpu-a");
  EXPECT_EQ(Place(Pending("{}", {{"pool", "cpu"}})).node, "cpu-a");
  EXPECT_EQ(Place(Pending("{}", {{"pool", "cpu"}}), {Bound("x", "cpu-a", "{}")}).node, "cpu-b");
}

TEST(SchedulerTest, CapacityIsHonouredExactly) {
  const std::vector<kube::ObjectPtr> bound = {Bound("x", "cpu-a", R"({"cpu": "3500m"})"),
                                              Bound("y", "cpu-b", R"({"cpu": 4})")};
  EXPECT_EQ(Place(Pending(R"({"cpu": "500m"})", {{"pool", "cpu"}}), bound).node, "cpu-a");
  const Placement none = Place(Pending(R"({"cpu": "501m"})", {{"pool", "cpu"}}), bound);
  EXPECT_FALSE(none.node.has_value());
  EXPECT_EQ(none.message,
            "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 2 "
            "Insufficient cpu.");
}

TEST(SchedulerTest, EndedPodsHoldNoResources) {
  const std::vector<kube::ObjectPtr> bound = {Bound("x", "cpu-a", R"({"cpu": 4})", "Succeeded"),
                                              Bound("y", "cpu-b", R"({"cpu": 4})", "Failed")};
  EXPECT_EQ(Place(Pending(R"({"cpu": 4})", {{"pool", "cpu"}}), bound).node, "cpu-a");
}

TEST(SchedulerTest, ExtendedResourcesMustBeAllocatable) {
  EXPECT_EQ(Place(Pending(R"({"nvidia.com/gpu": 2})")).node, "gpu-a");
  const Placement none =
      Place(Pending(R"({"nvidia.com/gpu": 1})"), {Bound("x", "gpu-a", R"({"nvidia.com/gpu": "2"})")});
  EXPECT_EQ(none.message, "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.");
}

TEST(SchedulerTest, UnnamedMemoryIsUnlimited) { EXPECT_EQ(Place(Pending(R"({"memory": "1Ti"})")).node, "gpu-a"); }

TEST(SchedulerTest, RequiredAffinity) {
  kube::Object pod = Pending("{}");
  kube::Json& spec = pod.mutable_json()["spec"];
  const auto require = [&](const char* terms) {
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = {
        {"nodeSelectorTerms", kube::Json::parse(terms)}};
  };
  require(R"([{"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["cpu"]}]}])");
  EXPECT_EQ(Place(pod).node, "gpu-a");
  require(R"([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["cpu-b"]}]}])");
  EXPECT_EQ(Place(pod).node, "cpu-b");
  require(R"([{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}])");
  EXPECT_FALSE(Place(pod).node.has_value());
}

TEST(PodRequestsTest, SumsContainersAndTakesTheLargestInit) {
  const kube::Object pod(kube::Json::parse(R"({"spec": {
    "containers": [{"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}},
                   {"resources": {"requests": {"cpu": "500m"}}}],
    "initContainers": [{"resources": {"requests": {"cpu": "3"}}}]}})"));
  const auto requests = PodRequests(pod);
  ASSERT_THAT(requests, base::IsOk());
  EXPECT_DOUBLE_EQ(requests->at("cpu"), 3);
  EXPECT_DOUBLE_EQ(requests->at("memory"), 1 << 30);
}

}  // namespace
}  // namespace medley::localcluster
