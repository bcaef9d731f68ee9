// How the sizes on which a program has run become its plans.
#include <gmock/gmock.h>

#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using kube::Json;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kProgram[] = R"json({
  "program": {"command": ["python3", "train.py"], "samplesPerStep": 512, "steps": 1000000, "image": "scripts:1",
              "progress": {"log": "step (?P<step>\\d+)"}},
  "objective": {"minThroughput": 1000},
  "resources": {"pools": ["a"]},
  "elasticity": {"enabled": true, "minUnits": 1, "maxUnits": 4}})json";

// A program that reaches 512 samples/s on one unit, as its profile says, and should reach 1,000. On two units it makes
// what `measured` says.
FakeCluster ProgramOn(double measured) {
  FakeCluster cluster;
  cluster.job["spec"] = Json::parse(kProgram);
  cluster.measure = [measured](const model::ExecutionPlan& plan, Observation& seen) {
    const int units = plan.stages.front().groups.front().units;
    seen.step = 20;
    seen.samples_done = 20 * 512;
    seen.samples_total = 512'000'000;
    seen.throughput = units == 2 ? measured : 512.0 * units;
  };
  return cluster;
}

TEST(SizesTest, WhatIsMeasuredIsInTheStatus) {
  FakeCluster cluster = ProgramOn(1100);
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  cluster.PassFor(base::seconds(60));
  const std::vector<SizeStatus> sizes = cluster.status().sizes;
  ASSERT_THAT(sizes, SizeIs(1)) << cluster.trace();
  EXPECT_EQ(sizes[0].pool, "a");
  EXPECT_EQ(sizes[0].units, 2);
  EXPECT_NEAR(sizes[0].seconds_per_step, 512.0 / 1100, 1e-4);
  EXPECT_LT(sizes[0].spread, 0.01);
  EXPECT_GT(sizes[0].measurements, 3);
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

// Two units are hardly faster than one, so four would not reach the goal either: none is bought.
TEST(SizesTest, UnitsThatWouldNotHelpAreNotBought) {
  FakeCluster cluster = ProgramOn(560);
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  cluster.PassFor(base::seconds(600));
  EXPECT_EQ(cluster.stored_plan()->plan.stages.front().groups.front().units, 2) << cluster.trace();
}

// Two units are somewhat slower than promised, and three reach the goal.
TEST(SizesTest, UnitsThatHelpAreBought) {
  FakeCluster cluster = ProgramOn(900);
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  cluster.PassFor(base::seconds(600));
  EXPECT_EQ(cluster.stored_plan()->plan.stages.front().groups.front().units, 3) << cluster.trace();
  EXPECT_GE(cluster.status().sizes.size(), 2u) << "the new size is measured too";
}

}  // namespace
}  // namespace medley::ops::lifecycle
