#include "operator/controllers/capacity.h"

#include <gtest/gtest.h>

namespace medley::ops {
namespace {

using kube::Json;

kube::ObjectPtr Node(const char* name, const char* allocatable, const char* more = "{}") {
  Json json = {{"metadata", {{"name", name}, {"labels", {{"kind", "a"}}}}},
               {"spec", Json::parse(more)},
               {"status", {{"allocatable", Json::parse(allocatable)}}}};
  return std::make_shared<kube::Object>(json);
}

kube::ObjectPtr Pod(const char* job, const char* role, const char* pool, const char* node,
                    const char* cpu) {
  Json json = {
      {"metadata",
       {{"name", "p"},
        {"namespace", "ns"},
        {"labels",
         {{"medley.dev/job-name", job}, {"medley.dev/role", role}, {"medley.dev/pool", pool}}}}},
      {"spec", {{"containers", Json::array({{{"resources", {{"requests", {{"cpu", cpu}}}}}}})}}},
      {"status", {{"phase", "Running"}}}};
  if (*node != '\0') json["spec"]["nodeName"] = node;
  return std::make_shared<kube::Object>(json);
}

ResourcePool Pool() {
  ResourcePool pool;
  pool.name = "a";
  pool.unit_resources = {{"cpu", "2"}};
  pool.node_selector = {{"kind", "a"}};
  pool.limit = 10;
  return pool;
}

TEST(CapacityTest, UnitsAreCountedNodeByNode) {
  const ClusterState cluster{
      {Node("n1", R"({"cpu": "5"})"), Node("n2", R"({"cpu": "3"})")},
      {Pod("j", "trainer", "a", "n1", "2"), Pod("x", "other", "", "n2", "1500m")},
      {}};
  const PoolUnits units = UnitsOf(Pool(), cluster);
  EXPECT_EQ(units.capacity, 3);  // 2 + 1: halves of two nodes make no unit
  EXPECT_EQ(units.used, 1);
  EXPECT_EQ(units.free, 1);
}

TEST(CapacityTest, ANodeWithoutCpuNumbersHasEnoughButNoOtherResource) {
  ResourcePool pool = Pool();
  EXPECT_EQ(UnitsOf(pool, {{Node("n", "{}")}, {}, {}}).free, 10);
  pool.unit_resources["nvidia.com/gpu"] = "1";
  EXPECT_EQ(UnitsOf(pool, {{Node("n", "{}")}, {}, {}}).free, 0);
}

TEST(CapacityTest, NodesThatDoNotServe) {
  EXPECT_FALSE(NodeServes(*Node("n", "{}", R"({"unschedulable": true})"), Pool()));
  ResourcePool other = Pool();
  other.node_selector = {{"kind", "b"}};
  EXPECT_FALSE(NodeServes(*Node("n", "{}"), other));
}

TEST(CapacityTest, AJobMayKeepWhatItHolds) {
  const ClusterState cluster{
      {Node("n", R"({"cpu": "8"})")},
      {Pod("mine", "trainer", "a", "n", "2"), Pod("mine", "server", "a", "n", "2"),
       Pod("other", "trainer", "a", "n", "2")},
      {}};
  EXPECT_EQ(UnitsForJob(Pool(), cluster, {"ns", "mine"}), 3);
  EXPECT_EQ(UnitsForJob(Pool(), cluster, {"ns", "third"}), 1);
  ResourcePool small = Pool();
  small.limit = 2;
  EXPECT_EQ(UnitsForJob(small, cluster, {"ns", "mine"}), 1);
}

TEST(CapacityTest, AutoscaledPoolsAreBoundedByTheLimitAlone) {
  ResourcePool pool = Pool();
  pool.scaling = PoolScaling::kAutoscaled;
  EXPECT_EQ(UnitsForJob(pool, {}, {"ns", "mine"}), 10);
  EXPECT_EQ(UnitsOf(pool, {}).free, 10);
}

TEST(CapacityTest, QuotasOfTheNamespaceBoundToo) {
  ResourcePool pool = Pool();
  pool.scaling = PoolScaling::kAutoscaled;
  const auto quota = [](const char* ns, const char* hard, const char* used) {
    return std::make_shared<kube::Object>(
        Json{{"metadata", {{"name", "q"}, {"namespace", ns}}},
             {"status", {{"hard", Json::parse(hard)}, {"used", Json::parse(used)}}}});
  };
  const auto mine = Pod("mine", "trainer", "a", "", "2");
  EXPECT_EQ(
      UnitsForJob(
          pool, {{}, {mine}, {quota("ns", R"({"requests.cpu": "9"})", R"({"requests.cpu": "3"})")}},
          {"ns", "mine"}),
      4);  // 6 left and 2 of its own
  EXPECT_EQ(UnitsForJob(pool, {{}, {}, {quota("ns", R"({"pods": "3"})", R"({"pods": "1"})")}},
                        {"ns", "mine"}),
            2);
  EXPECT_EQ(UnitsForJob(pool, {{}, {}, {quota("else", R"({"pods": "0"})", "{}")}}, {"ns", "mine"}),
            10);
}

}  // namespace
}  // namespace medley::ops
