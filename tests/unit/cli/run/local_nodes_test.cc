#include "cli/run/local_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"

namespace medley::cli {
namespace {

using base::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

const localcluster::Machine kMachine{2, int64_t{4} << 30, {}};
const localcluster::Machine kWithGpus{2, int64_t{4} << 30, {"0", "1"}};

kube::Object Pool(const std::string& name, kube::Json unit, kube::Json selector = kube::Json::object(),
                  const std::string& simulate = "") {
  kube::Object pool(kube::Json{{"metadata", {{"name", name}}},
                               {"spec",
                                {{"class", "CPU"},
                                 {"limit", 3},
                                 {"unit", {{"resources", std::move(unit)}}},
                                 {"nodeSelector", std::move(selector)}}}});
  if (!simulate.empty()) pool.mutable_json()["metadata"]["annotations"]["run.medley.dev/simulate"] = simulate;
  return pool;
}

TEST(LocalNodesTest, OneNodeHasWhatTheMachineHasAndTheLabelsOfAllPools) {
  const auto local = NodesFor(
      {Pool("a", {{"cpu", "1"}, {"memory", "1Gi"}}, {{"kind", "x"}}), Pool("b", {{"cpu", "500m"}}, {{"zone", "z"}})},
      kMachine, false);
  ASSERT_THAT(local, base::IsOk());
  ASSERT_EQ(local->nodes.size(), 1u);
  EXPECT_THAT(local->nodes[0].labels, UnorderedElementsAre(Pair("kind", "x"), Pair("zone", "z")));
  EXPECT_THAT(local->nodes[0].allocatable, UnorderedElementsAre(Pair("cpu", "2"), Pair("memory", "4294967296")));
  EXPECT_THAT(local->remarks, testing::IsEmpty());
}

// Issue 12: 12 CPUs were shown on 2 cores, and the profile of a GPU pool was measured on the CPU.
TEST(LocalNodesTest, APoolThatTheMachineCannotServeIsUnschedulableWithASentence) {
  const kube::Object good = Pool("good", {{"cpu", "1"}});
  const auto remark = [&](const kube::Object& pool, const localcluster::Machine& machine = kMachine) {
    const auto local = NodesFor({good, pool}, machine, false);
    EXPECT_THAT(local, base::IsOk());
    EXPECT_EQ(local->nodes.size(), 1u);
    EXPECT_FALSE(local->nodes[0].allocatable.contains("nvidia.com/gpu"));
    EXPECT_FALSE(local->nodes[0].labels.contains("kind"));
    return local->remarks.size() == 1 ? local->remarks[0] : "";
  };
  const kube::Json gpu = {{"nvidia.com/gpu", 1}, {"cpu", "1"}};
  EXPECT_EQ(
      remark(Pool("gpus", gpu, {{"kind", "v100"}})),
      "ResourcePool gpus: no unit can run on this machine: it needs a GPU, and the machine has 2 CPUs, 4.0 GiB of "
      "memory and no GPU. To simulate the pool on this machine's CPUs, set its annotation "
      "run.medley.dev/simulate: \"true\"");
  kube::Object by_class = Pool("gpus", {{"cpu", "1"}}, {{"kind", "v100"}});
  by_class.mutable_json()["spec"]["class"] = "GPU";
  EXPECT_THAT(remark(by_class), HasSubstr("it needs a GPU, and the machine has 2 CPUs"));
  EXPECT_THAT(remark(Pool("gpus", gpu), kWithGpus), HasSubstr("this medley-worker computes on CPUs only"));
  EXPECT_THAT(remark(Pool("big", {{"cpu", "2100m"}}, {{"kind", "big"}})),
              HasSubstr("a unit needs 2.1 cpu, and the machine has 2 CPUs, 4.0 GiB of memory and no GPU"));
  EXPECT_THAT(remark(Pool("big", {{"memory", "5Gi"}})), HasSubstr("memory"));
  EXPECT_THAT(remark(Pool("odd", {{"example.com/fpga", 1}})), HasSubstr("a unit needs 1 example.com/fpga"));
}

// Issue 45: two units of one CPU did not fit two CPUs, because of the coordinator's 0.1 CPU.
TEST(LocalNodesTest, UnitsMayHaveTheWholeMachineBesideTheCoordinator) {
  for (const auto& [resource, amount] : {std::pair("cpu", "2"), std::pair("memory", "4Gi")}) {
    const auto local = NodesFor({Pool("whole", {{resource, amount}})}, kMachine, false);
    ASSERT_THAT(local, base::IsOk()) << resource;
    EXPECT_THAT(local->nodes[0].besides, UnorderedElementsAre(Pair("cpu", "0.1"), Pair("memory", "134217728")));
    EXPECT_THAT(local->limits, ElementsAre(HasSubstr("ResourcePool whole: its limit is 3 units, and 1 of ")));
  }
  kube::Object pair = Pool("pair", {{"cpu", "1"}, {"memory", "2Gi"}});
  pair.mutable_json()["spec"]["limit"] = 2;
  EXPECT_THAT(NodesFor({pair}, kMachine, false)->limits, testing::IsEmpty());
  const kube::Object tenths = Pool("tenths", {{"cpu", "0.66666"}});
  EXPECT_THAT(NodesFor({tenths}, kMachine, false)->limits, testing::IsEmpty());
}

TEST(LocalNodesTest, OneMachineHasOneValueOfALabel) {
  const auto local =
      NodesFor({Pool("old", {{"cpu", "1"}}, {{"machine", "old"}}), Pool("new", {{"cpu", "1"}}, {{"machine", "new"}})},
               kMachine, false);
  ASSERT_THAT(local, base::IsOk());
  ASSERT_EQ(local->nodes.size(), 1u);
  EXPECT_EQ(local->nodes[0].labels.at("machine"), "old");
  EXPECT_THAT(local->remarks, ElementsAre(HasSubstr("its nodeSelector says machine=new, that of an earlier pool says "
                                                    "machine=old, and this is one machine")));
}

TEST(LocalNodesTest, SimulatedPoolsHaveRoomForTheirLimitAndSaySo) {
  const auto local = NodesFor(
      {Pool("a", {{"cpu", "500m"}, {"memory", "1Gi"}}, {{"kind", "x"}}, "true"),
       Pool("b", {{"cpu", "1"}}, {{"kind", "x"}}, "true"), Pool("g", {{"nvidia.com/gpu", 1}}, {{"kind", "g"}}, "true")},
      kMachine, false);
  ASSERT_THAT(local, base::IsOk());
  ASSERT_EQ(local->nodes.size(), 2u);
  EXPECT_THAT(local->nodes[0].labels,
              UnorderedElementsAre(Pair("kind", "g"), Pair("run.medley.dev/simulated", "true")));
  EXPECT_EQ(local->nodes[0].allocatable.at("nvidia.com/gpu"), "3");
  EXPECT_EQ(local->nodes[1].name, "local-a");
  EXPECT_EQ(local->nodes[1].allocatable.at("cpu"), "12.5");  // 3 x 0.5 + 3 x 1, and 8 for coordinators and profilers
  EXPECT_THAT(local->remarks, ElementsAre("simulated, because the file asks for it (run.medley.dev/simulate): a, b, g. "
                                          "Their units are limited parts of this machine, which has 2 CPUs, 4.0 GiB of "
                                          "memory and no GPU"));
}

TEST(LocalNodesTest, RealAndSimulatedPoolsHaveNodesOfTheirOwn) {
  const auto local = NodesFor(
      {Pool("a", {{"cpu", "1"}}, {{"kind", "x"}}, "false"), Pool("b", {{"cpu", "9"}}, {{"kind", "y"}}, "true")},
      kMachine, false);
  ASSERT_THAT(local, base::IsOk());
  ASSERT_EQ(local->nodes.size(), 2u);
  EXPECT_EQ(local->nodes[0].name, "local");
  EXPECT_EQ(local->nodes[0].allocatable.at("cpu"), "2");
  EXPECT_EQ(local->nodes[1].allocatable.at("cpu"), "35");
}

TEST(LocalNodesTest, AMachineWithGpusOffersThem) {
  const kube::Object gpus = Pool("gpus", {{"nvidia.com/gpu", 1}, {"cpu", "1"}}, {{"kind", "v100"}});
  const kube::Object simulated = Pool("others", {{"nvidia.com/gpu", 1}}, {{"kind", "g"}}, "true");
  auto local = NodesFor({gpus, simulated}, kWithGpus, true);
  ASSERT_THAT(local, base::IsOk());
  ASSERT_EQ(local->nodes.size(), 2u);
  EXPECT_EQ(local->nodes[0].allocatable.at("nvidia.com/gpu"), "2");
  EXPECT_TRUE(local->nodes[0].has_gpus);
  EXPECT_EQ(local->nodes[1].allocatable.at("nvidia.com/gpu"), "3");
  EXPECT_FALSE(local->nodes[1].has_gpus) << "the pods of a simulated pool see no GPU";
  const kube::Object good = Pool("good", {{"cpu", "1"}});
  local = NodesFor({good, Pool("many", {{"nvidia.com/gpu", 3}})}, kWithGpus, true);
  ASSERT_THAT(local, base::IsOk());
  EXPECT_THAT(local->remarks, ElementsAre(HasSubstr("a unit needs 3 nvidia.com/gpu")));
  kube::Object by_class = Pool("gpus", {{"cpu", "1"}}, {{"kind", "v100"}});
  by_class.mutable_json()["spec"]["class"] = "GPU";
  local = NodesFor({good, by_class}, kWithGpus, true);
  ASSERT_THAT(local, base::IsOk());
  EXPECT_THAT(local->remarks, ElementsAre(HasSubstr("its class is GPU, and its unit asks for no nvidia.com/gpu")));
}

TEST(LocalNodesTest, SimulatedPoolsComputeOnTheCpu) {
  std::vector<kube::Object> pools = {Pool("real", {{"cpu", "1"}}), Pool("simulated", {{"cpu", "1"}}, {}, "true"),
                                     Pool("chosen", {{"cpu", "1"}}, {}, "true")};
  const kube::Json chosen = {{{"name", "A"}, {"value", "b"}}, {{"name", "MEDLEY_DEVICE"}, {"value", "auto"}}};
  pools[2].mutable_json()["spec"]["unit"]["env"] = chosen;
  SimulateOnCpu(pools);
  EXPECT_TRUE(pools[0].At("/spec/unit/env").is_null());
  EXPECT_EQ(pools[1].At("/spec/unit/env"), (kube::Json{{{"name", "MEDLEY_DEVICE"}, {"value", "cpu"}}}));
  EXPECT_EQ(pools[2].At("/spec/unit/env"), chosen);
  EXPECT_FALSE(AnyForGpus(pools));
  pools.push_back(Pool("gpus", {{"nvidia.com/gpu", 1}}));
  EXPECT_TRUE(AnyForGpus(pools));
}

TEST(LocalNodesTest, WithoutAUsablePoolNothingStarts) {
  EXPECT_THAT(NodesFor({Pool("g", {{"nvidia.com/gpu", 1}}), Pool("big", {{"cpu", "64"}})}, kMachine, false),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::AllOf(HasSubstr("ResourcePool g: "), HasSubstr("\nResourcePool big: "))));
  // Every node would do for its pods, so it cannot be kept off the machine's.
  kube::Object by_class = Pool("gpus", {{"cpu", "1"}});
  by_class.mutable_json()["spec"]["class"] = "GPU";
  EXPECT_THAT(NodesFor({Pool("good", {{"cpu", "1"}}), by_class}, kMachine, false),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ResourcePool gpus: ")));
  EXPECT_THAT(NodesFor({Pool("a", {{"cpu", "1"}}, {}, "yes")}, kMachine, false),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must be \"true\" or \"false\", is \"yes\"")));
}

}  // namespace
}  // namespace medley::cli
