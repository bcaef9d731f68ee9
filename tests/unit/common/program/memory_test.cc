// Memory that was added up by hand.
#include "common/program/memory.h"

#include <gmock/gmock.h>

#include <array>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/program/compile.h"
#include "tests/unit/common/program/sample_models.h"

namespace medley::program {
namespace {

using base::IsOk;
using base::StatusIs;
using model::ScheduleKind;
using testing::HasSubstr;

model::Model TwoDense() { return {"two", {Dense("a"), Dense("b", 800)}}; }

std::vector<DeviceMemory> Counted(const model::ExecutionPlan& plan, const model::Model& model,
                                  const MemoryOptions& options) {
  const auto program = Compile(plan, model);
  EXPECT_THAT(program, IsOk());
  return program.ok() ? CountMemory(*program, model, options) : std::vector<DeviceMemory>{};
}

// A sample of an operation's output has 40 bytes. Parameters: 400 x 3 and one version of 400 x 2.
TEST(MemoryTest, CountsActivationsOfTheMicroBatchesInFlight) {
  const auto memory = Counted(StagesPlan({{1, 1}, {2, 1}}, 4), TwoDense(), {.samples = 8});
  ASSERT_EQ(memory.size(), 2u);
  EXPECT_DOUBLE_EQ(memory[0].at_rest, 1200 + 800);
  // Two micro-batches of 2 samples are in flight, and a gradient has been received.
  EXPECT_DOUBLE_EQ(memory[0].peak, 2000 + 2 * 80 + 80);
  EXPECT_DOUBLE_EQ(memory[1].at_rest, 2400 + 1600);
  // The received input, the activations, and the gradient of the input when the backward pass ends; m1 is received
  // before m0 is done: the order is merged.
  EXPECT_GE(memory[1].peak, 4000 + 3 * 80);
  for (const DeviceMemory& device : memory) EXPECT_DOUBLE_EQ(device.left, 0);
}

TEST(MemoryTest, GPipeKeepsAllMicroBatches) {
  const auto memory =
      Counted(StagesPlan({{1, 1}, {2, 1}}, 4, ScheduleKind::kGpipe), TwoDense(), {.samples = 8, .without_undo = true});
  EXPECT_DOUBLE_EQ(memory[0].at_rest, 1200);
  // The gradient of m1 is received while m0's is used.
  EXPECT_DOUBLE_EQ(memory[0].peak, 1200 + 4 * 80 + 2 * 80);
}

// The first of two stages computes with parameters of two steps before: three versions with undo.
TEST(MemoryTest, CountsVersions) {
  const model::ExecutionPlan plan = StagesPlan({{1, 1}, {2, 1}}, 1, ScheduleKind::kAsync1F1B);
  EXPECT_DOUBLE_EQ(Counted(plan, TwoDense(), {.without_undo = true})[0].at_rest, 1200 + 800);
  EXPECT_DOUBLE_EQ(Counted(plan, TwoDense(), {.without_undo = true})[1].at_rest, 2400);
  EXPECT_DOUBLE_EQ(Counted(plan, TwoDense(), {})[0].at_rest, 1200 + 2 * 800);
  EXPECT_DOUBLE_EQ(Counted(plan, TwoDense(), {})[1].at_rest, 2400 + 2 * 1600);
}

TEST(MemoryTest, CountsBatchesOfOpenSteps) {
  model::Model model = TwoDense();
  model.layers[0].input_bytes = 100;
  const auto memory = Counted(StagesPlan({{1, 1}, {2, 1}}, 1), model, {.samples = 4});
  EXPECT_THAT(memory[0].holders, testing::Contains(testing::Field(&Holder::name, "batches")));
  EXPECT_DOUBLE_EQ(memory[0].peak, 2000 + 400 + 160 + 160);
}

TEST(MemoryTest, TablesAreOnTheServers) {
  model::ExecutionPlan plan = StagesPlan({{4, 2}}, 1);
  plan.stages[0].syncs = {{{{0, 1}}, {.kind = model::SyncKind::kParameterServer}}, {{{1, 4}}, Allreduce()}};
  plan.servers = model::Servers{"cpu", 2};
  const auto memory = Counted(plan, ChainModel(), {});
  ASSERT_EQ(memory.size(), 4u);
  EXPECT_DOUBLE_EQ(memory[2].peak, 6000);
  EXPECT_DOUBLE_EQ(memory[0].at_rest, 2 * (1200 + 800));
}

TEST(MemoryTest, UsesTheProfileOfThePool) {
  model::Model model = TwoDense();
  model.layers[0].profiles = {{.resource_type = "p0", .activation_bytes = 1000}};
  EXPECT_DOUBLE_EQ(Counted(StagesPlan({{1, 1}, {2, 1}}, 1), model, {})[0].peak, 2000 + 1000 + 40);
}

TEST(MemoryTest, NamesTheDeviceAndTheLargestTensors) {
  const auto program = Compile(StagesPlan({{1, 1}, {2, 1}}, 1), TwoDense());
  ASSERT_THAT(program, IsOk());
  EXPECT_THAT(CheckMemory(*program, TwoDense(), {1e6, 1e6}, {.samples = 100}), IsOk());
  EXPECT_THAT(CheckMemory(*program, TwoDense(), {0, 0}, {.samples = 100}), IsOk());
  EXPECT_THAT(CheckMemory(*program, TwoDense(), {1e6, 10240}, {.samples = 100}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       testing::AllOf(HasSubstr("device p1/0 has 10 KiB of memory, the plan needs 15.6 KiB"),
                                      HasSubstr("activations of b (3.91 KiB)"))));
}

// Whatever the plan: nothing is left, and the peak is not below what stays.
TEST(MemoryTest, IsFreeAtTheEnd) {
  base::Rng rng(3);
  for (int round = 0; round < 200; ++round) {
    model::Model model{"random", {}};
    const int layers = 3 + static_cast<int>(rng.Below(5));
    for (int i = 0; i < layers; ++i) model.layers.push_back(Dense("l" + std::to_string(i)));
    std::vector<std::pair<int, int>> ends;
    for (int end = 1; end < layers; end += 1 + static_cast<int>(rng.Below(3))) {
      ends.emplace_back(end, 1 + static_cast<int>(rng.Below(3)));
    }
    ends.emplace_back(layers, 1);
    const auto kind = std::array{ScheduleKind::kSync1F1B, ScheduleKind::kGpipe, ScheduleKind::kAsync1F1B}[rng.Below(3)];
    const auto program = Compile(StagesPlan(ends, 1 + static_cast<int>(rng.Below(5)), kind), model);
    ASSERT_THAT(program, IsOk());
    const auto memory = CountMemory(*program, model, {.samples = 1 + static_cast<int>(rng.Below(20))});
    for (const DeviceMemory& device : memory) {
      EXPECT_NEAR(device.left, 0, 1e-6);
      EXPECT_GE(device.peak, device.at_rest);
      double held = 0;
      for (const Holder& holder : device.holders) held += holder.bytes;
      EXPECT_NEAR(held, device.peak, 1e-6);
    }
  }
}

}  // namespace
}  // namespace medley::program
