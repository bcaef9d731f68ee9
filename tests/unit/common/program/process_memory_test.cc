// Bytes of processes that were added up by hand, and what is refused.
#include "common/program/process_memory.h"

#include <gmock/gmock.h>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/program/compile.h"
#include "tests/unit/common/program/sample_models.h"

namespace medley::program {
namespace {

using base::IsOk;
using testing::HasSubstr;

constexpr double kMebibyte = 1 << 20;
constexpr double kNativeTrainer = 41 * kMebibyte, kNativeServer = 41 * kMebibyte, kNativeCoordinator = 35 * kMebibyte;

// Layers whose weights have as many MiB as given, with outputs of 1 KiB a sample.
model::Model Mebibytes(const std::vector<double>& sizes) {
  model::Model model{"big", {}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    model.layers.push_back(Dense("fc" + std::to_string(i), sizes[i] * kMebibyte));
    model.layers.back().output_bytes = 1024;
  }
  return model;
}

std::vector<ProcessMemory> Needed(const model::ExecutionPlan& plan, const model::Model& model,
                                  const ProcessOptions& options, const std::vector<bool>& on_gpu = {}) {
  const auto program = Compile(plan, model);
  EXPECT_THAT(program, IsOk());
  return program.ok() ? MemoryOfMembers(*program, model, options, on_gpu) : std::vector<ProcessMemory>{};
}

double PartOf(const ProcessMemory& memory, const std::string& name) {
  double bytes = 0;
  for (const Holder& part : memory.parts) bytes += part.name.find(name) == 0 ? part.bytes : 0;
  return bytes;
}

double SumOf(const ProcessMemory& memory) {
  double bytes = 0;
  for (const Holder& part : memory.parts) bytes += part.bytes;
  return bytes;
}

// Adam: weights, two moments and a gradient; one version more, so that an update can be undone.
TEST(ProcessMemoryTest, ATrainerOfTheWholeModel) {
  const auto needs = Needed(StagesPlan({{3, 1}}, 1), Mebibytes({10, 30, 20}),
                            {.tensors = {.samples = 1024, .state_factor = 4}, .rows = 1e6, .row_bytes = 28});
  ASSERT_EQ(needs.size(), 1u);
  EXPECT_DOUBLE_EQ(PartOf(needs[0], "the program"), kNativeTrainer);
  EXPECT_DOUBLE_EQ(PartOf(needs[0], "the rows"), 28e6);
  EXPECT_DOUBLE_EQ(PartOf(needs[0], "parameters and optimizer state"), 60 * 4 * kMebibyte);
  EXPECT_DOUBLE_EQ(PartOf(needs[0], "older versions"), 60 * 3 * kMebibyte);
  EXPECT_DOUBLE_EQ(PartOf(needs[0], "a copy for checkpoints"), 60 * 3 * kMebibyte);
  EXPECT_DOUBLE_EQ(PartOf(needs[0], "a copy of the largest parameter"), 30 * 3 * kMebibyte);
  EXPECT_DOUBLE_EQ(PartOf(needs[0], "activations of fc"), 3 * kMebibyte);
  EXPECT_DOUBLE_EQ(PartOf(needs[0], "activations of an evaluation"), 3 * kMebibyte);
  EXPECT_DOUBLE_EQ(needs[0].bytes, SumOf(needs[0]));
  // A job without checkpoints, evaluations and exchanges does without their copies.
  EXPECT_DOUBLE_EQ(needs[0].unsure, (180 + 90 + 3) * kMebibyte);
}

TEST(ProcessMemoryTest, ATrainerHoldsItsStageAndItsVersions) {
  const model::Model model = Mebibytes({10, 30});
  const ProcessOptions options{.tensors = {.samples = 8, .state_factor = 2}};
  const auto sync = Needed(StagesPlan({{1, 1}, {2, 1}}, 2), model, options);
  ASSERT_EQ(sync.size(), 2u);
  EXPECT_DOUBLE_EQ(PartOf(sync[0], "parameters and optimizer state"), 20 * kMebibyte);
  EXPECT_DOUBLE_EQ(PartOf(sync[1], "parameters and optimizer state"), 60 * kMebibyte);
  const auto async = Needed(StagesPlan({{1, 1}, {2, 1}}, 2, model::ScheduleKind::kAsync1F1B), model, options);
  EXPECT_DOUBLE_EQ(PartOf(async[0], "older versions"), 20 * kMebibyte) << "a step computes with those of two before";
  EXPECT_GT(async[0].bytes, sync[0].bytes);
  // Only the first replica of a stage writes checkpoints.
  const auto replicas = Needed(StagesPlan({{2, 2}}, 1), model, options);
  EXPECT_GT(PartOf(replicas[0], "a copy for checkpoints"), 0);
  EXPECT_DOUBLE_EQ(PartOf(replicas[1], "a copy for checkpoints"), 0);
}

model::ExecutionPlan PlanWithServers(int servers) {
  model::ExecutionPlan plan = StagesPlan({{4, 1}}, 1);
  plan.stages[0].syncs = {{{{0, 1}}, {.kind = model::SyncKind::kParameterServer}}, {{{1, 4}}, Allreduce()}};
  plan.servers = model::Servers{"cpu", servers};
  return plan;
}

TEST(ProcessMemoryTest, AServerHoldsTheRowsThatTheDataUse) {
  model::Model model = ChainModel();
  model.layers[0].weight_bytes = 4e9 * 64;
  model.layers[0].attributes = {{"rows", "4000000000"}, {"dim", "16"}, {"fields", "8"}};
  const ProcessOptions options{.tensors = {.samples = 8, .state_factor = 4}, .rows = 1e6, .row_bytes = 32};
  auto needs = Needed(PlanWithServers(2), model, options);
  ASSERT_EQ(needs.size(), 3u);
  const double row = 4 * 16 * 3 + 28;  // weights, two moments, key and step, and its part of the index
  EXPECT_DOUBLE_EQ(needs[1].bytes, kNativeServer + 8e6 * row / 2) << "at most all categories of all rows";
  EXPECT_DOUBLE_EQ(needs[1].unsure, 8e6 * row / 2);
  EXPECT_DOUBLE_EQ(TableShare(model, options), 0) << "not known";
  model.layers[0].attributes[kUsedRows] = "100000";
  needs = Needed(PlanWithServers(2), model, options);
  EXPECT_DOUBLE_EQ(needs[1].bytes, kNativeServer + 1e5 * row / 2);
  EXPECT_DOUBLE_EQ(needs[1].unsure, 0);
  EXPECT_DOUBLE_EQ(TableShare(model, options), 1e5 * row / (4e9 * 64 * 4));
  EXPECT_LT(needs[0].bytes, 100 * kMebibyte) << "the trainer holds no table";
}

TEST(ProcessMemoryTest, ATrainerWithoutServersHoldsWholeTables) {
  model::Model model = ChainModel();
  model.layers[0].weight_bytes = 50 * kMebibyte;
  const auto needs = Needed(StagesPlan({{4, 1}}, 1), model, {.tensors = {.state_factor = 3}});
  EXPECT_DOUBLE_EQ(PartOf(needs[0], "tables"), 100 * kMebibyte);
}

// Activations are in the GPU's memory. So are parameters, unless the pool's image computes on CPUs.
TEST(ProcessMemoryTest, AGpuKeepsTheActivations) {
  const model::Model model = Mebibytes({10});
  const ProcessOptions options{.tensors = {.samples = 1 << 20}, .torch = true};
  const auto host = Needed(StagesPlan({{1, 1}}, 1), model, options);
  const auto gpu = Needed(StagesPlan({{1, 1}}, 1), model, options, {true});
  EXPECT_GT(PartOf(host[0], "activations"), 1000 * kMebibyte);
  EXPECT_DOUBLE_EQ(PartOf(gpu[0], "activations"), 0);
  EXPECT_DOUBLE_EQ(PartOf(gpu[0], "parameters"), PartOf(host[0], "parameters"));
  EXPECT_GE(gpu[0].unsure, PartOf(gpu[0], "parameters"));
  EXPECT_LT(LeastMemory(host[0], true), 200 * kMebibyte) << "PyTorch may need fewer";
}

// 10 MiB of weights with Adam: the gradient, and weights and two moments of two versions; 1 KiB a sample of
// activations.
TEST(ProcessMemoryTest, AGpuHoldsParametersAndActivations) {
  model::Model model = Mebibytes({10});
  const ProcessOptions options{.tensors = {.samples = 1 << 10, .state_factor = 4}};
  const auto program = Compile(StagesPlan({{1, 1}}, 1), model);
  ASSERT_THAT(program, IsOk());
  const ProcessMemory gpu = MemoryOfGpus(*program, model, options, {true}).at(0);
  EXPECT_DOUBLE_EQ(PartOf(gpu, "parameters"), 10 * (1 + 3) * kMebibyte);
  EXPECT_DOUBLE_EQ(PartOf(gpu, "older versions"), 10 * 3 * kMebibyte);
  EXPECT_GE(PartOf(gpu, "activations"), kMebibyte);
  EXPECT_DOUBLE_EQ(gpu.bytes, SumOf(gpu));
  EXPECT_NEAR(LeastGpuMemory(gpu), 0.95 * (71 * kMebibyte), 3 * kMebibyte) << "CUDA's own is not sure";
  EXPECT_DOUBLE_EQ(MemoryOfGpus(*program, model, options, {false}).at(0).bytes, 0);
}

// A step's rows and their gradients, of a table that is elsewhere.
TEST(ProcessMemoryTest, AGpuHoldsTheRowsOfAStep) {
  model::Model model = ChainModel();
  model.layers[0].weight_bytes = 50 * kMebibyte;
  model.layers[0].output_bytes = 640;
  const ProcessOptions options{.tensors = {.samples = 100}};
  const auto program = Compile(StagesPlan({{4, 1}}, 1), model);
  ASSERT_THAT(program, IsOk());
  const ProcessMemory gpu = MemoryOfGpus(*program, model, options, {true}).at(0);
  EXPECT_DOUBLE_EQ(PartOf(gpu, "rows of a step"), 2 * 640 * 100);
  EXPECT_DOUBLE_EQ(PartOf(gpu, "tables"), 0);
}

TEST(ProcessMemoryTest, AProfilerHoldsOneOperationAtATime) {
  const ProcessMemory needs =
      MemoryOfProfiler(Mebibytes({10, 300, 20}), {.tensors = {.samples = 10, .state_factor = 3}});
  EXPECT_DOUBLE_EQ(PartOf(needs, "parameters, gradients and optimizer state of fc1"), 300 * 5 * kMebibyte);
  EXPECT_DOUBLE_EQ(needs.bytes, SumOf(needs));
}

TEST(ProcessMemoryTest, ACoordinatorWritesOneParameterAtATime) {
  const ProcessMemory needs = MemoryOfCoordinator(Mebibytes({10, 300, 20}), {.tensors = {.state_factor = 3}});
  EXPECT_DOUBLE_EQ(needs.bytes, kNativeCoordinator + 600 * kMebibyte);
}

// Rows that may be in a file are no reason to refuse a job, and fill no memory beside its tensors.
TEST(ProcessMemoryTest, RowsThatMayBeInAFileAreNotSure) {
  const double most = 64 * kMebibyte;
  const auto needed = [&](double rows, double most_row_bytes) {
    return Needed(StagesPlan({{1, 1}}, 1), Mebibytes({10}),
                  {.rows = rows, .row_bytes = 40, .most_row_bytes = most_row_bytes})[0];
  };
  const ProcessMemory large = needed(1e9, most), small = needed(4e5, most), none = needed(0, most);
  EXPECT_DOUBLE_EQ(PartOf(large, "the rows"), most) << "without a disk for the file it takes no more in memory";
  EXPECT_DOUBLE_EQ(LeastMemory(large, false), LeastMemory(none, false));
  EXPECT_DOUBLE_EQ(PartOf(small, "the rows"), 16e6);
  EXPECT_NEAR(LeastMemory(small, false) - LeastMemory(none, false), 0.95 * 16e6, 1);
  EXPECT_NEAR(LeastMemory(needed(1e9, 0), false) - LeastMemory(none, false), 0.95 * 40e9, 1) << "arrays";
  const auto room = [&](double rows) {
    return RoomForTensors(1000 * kMebibyte, {.rows = rows, .row_bytes = 40, .most_row_bytes = most});
  };
  EXPECT_DOUBLE_EQ(room(1e9), room(0));
  EXPECT_NEAR(room(0) - room(4e5), 16e6, 1);
}

TEST(ProcessMemoryTest, WordsNameTheLargestParts) {
  const auto needs = Needed(StagesPlan({{3, 1}}, 1), Mebibytes({10, 30, 20}), {.tensors = {.state_factor = 4}});
  EXPECT_THAT(InWords(needs[0]), HasSubstr("parameters and optimizer state of fc0..fc2 (240 MiB), "));
  EXPECT_THAT(InWords(needs[0]), HasSubstr("others ("));
}

// The room for tensors and what is refused agree: a state that fills the room is not refused, a larger one is.
TEST(ProcessMemoryTest, RoomAndRefusalAgree) {
  base::Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    const double limit = rng.Uniform(300, 5000) * kMebibyte;
    ProcessOptions options{.tensors = {.samples = 1, .state_factor = 2, .without_undo = true},
                           .torch = rng.Below(2) == 0,
                           .rows = rng.Uniform(0, 1e6),
                           .row_bytes = 40};
    const double room = RoomForTensors(limit, options);
    ASSERT_GT(room, 0);
    for (const double share : {0.98, 1.02}) {
      model::Model model = Mebibytes({room * share / 2 / kMebibyte});
      model.layers[0].output_bytes = 4;
      const auto needs = Needed(StagesPlan({{1, 1}}, 1), model, options);
      ASSERT_EQ(LeastMemory(needs[0], options.torch) > limit, share > 1) << "round " << round;
    }
  }
  EXPECT_DOUBLE_EQ(RoomForTensors(0, {}), 0) << "no limit";
  EXPECT_DOUBLE_EQ(RoomForTensors(kMebibyte, {}), 1) << "nothing fits, and 0 would be no limit";
}

}  // namespace
}  // namespace medley::program
