// Built-in models on the test device, whose memory the host cannot touch: what a step copies, that memory does not
// grow, and what happens when an allocation or the device fails. Not for the build with CUDA.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/aten/device_checks.h"
#include "tests/unit/worker/aten/layer_chain.h"
#include "tests/unit/worker/zoo/zoo_jobs.h"
#include "worker/aten/testing/tested_device.h"
#include "worker/device/testing/guarded_memory.h"
#include "worker/pipeline/whole_tables.h"

namespace medley::worker::aten {
namespace {

using base::IsOk;
using base::StatusIs;
using device::GuardedMemory;
using ::testing::HasSubstr;

constexpr int kGuardedSamples = 32;

GuardedMemory& LayerMemory() { return GuardedMemory::OfProcess(); }

Graph ZooGraph(const std::string& name) { return *BuildGraph(testing::ZooJob(name)); }

LayerChain::Setup OnDevice() { return {.on_device = {true}, .optimizer = *MakeOptimizer("adam", 0.01)}; }

int64_t Bytes(const LayerChain::Named& values) {
  int64_t bytes = 0;
  for (const auto& [name, floats] : values) bytes += static_cast<int64_t>(floats.size() * sizeof(float));
  return bytes;
}

// Whoever copies: blocks, kernels and conversions between types of devices all count.
TEST(LayerBlockDeviceTest, AStepCopiesItsBatchAndItsRows) {
  for (const std::string& name : testing::ZooNames()) {
    const Graph graph = ZooGraph(name);
    LayerChain chain(graph, OnDevice());
    const Batch batch = SomeSamples(graph, 5, kGuardedSamples);
    const bool has_numbers =
        std::ranges::any_of(graph.operations, [](const Operation& operation) { return operation.reads_numerics; });
    const auto samples =
        static_cast<int64_t>(4 * (batch.ids.size() + batch.labels.size() + (has_numbers ? batch.numerics.size() : 0)));
    for (int64_t step = 1; step <= 4; ++step) {
      const device::CopyCounts before = LayerMemory().counts();
      ASSERT_THAT(chain.Step(step, batch, step % 2 == 0 ? 1 : 2), IsOk()) << name;
      EXPECT_FALSE(std::isnan(chain.Loss()));
      const device::CopyCounts copied = LayerMemory().counts() - before;
      const int64_t rows = Bytes(chain.Rows());
      EXPECT_EQ(copied.bytes_in, samples + rows) << name;
      EXPECT_EQ(copied.bytes_out, rows + static_cast<int64_t>(sizeof(double))) << name;
    }
  }
}

// With its tables on the device a step sends keys instead of rows.
TEST(LayerBlockDeviceTest, AStepWithItsTablesCopiesKeys) {
  const Graph graph = ZooGraph("deepfm");
  const Batch batch = SomeSamples(graph, 5, kGuardedSamples);
  const BlockSettings settings{.optimizer = *MakeOptimizer("adam", 0.01), .device = *OpenTestedDevice()};
  const auto block = *MakeBlock(graph, {0, static_cast<int>(graph.operations.size())}, settings);
  TableKeeper* const keeper = KeeperOf(*block);
  ASSERT_NE(keeper, nullptr);
  const auto tables = *keeper->MakeTables(settings.optimizer, settings.seed, 1);
  ASSERT_NE(tables, nullptr);
  std::vector<TableKeys> keys;
  for (const ParameterSpec& table : block->Tables()) {
    TableKeys& some = keys.emplace_back(TableKeys{table.operation, static_cast<int>(table.columns), {}});
    for (uint64_t key = 0; key < LayerChain::kTableRows; ++key) some.keys.push_back(3 * key);
  }
  const auto sent = static_cast<int64_t>(4 * (batch.ids.size() + batch.labels.size() + batch.numerics.size()) +
                                         8 * LayerChain::kTableRows * keys.size());
  double first = 0;
  for (int64_t step = 1; step <= 10; ++step) {
    const device::CopyCounts before = LayerMemory().counts();
    std::vector<std::vector<float>> rows;
    ASSERT_THAT(tables->Pull(step, keys, rows, {}), IsOk());
    block->BeginStep({.step = step, .version = step - 1, .global_samples = batch.samples});
    for (size_t t = 0; t < keys.size(); ++t) {
      keeper->SetKeys(0, static_cast<int>(t), keys[t].keys);
      block->SetRows(0, static_cast<int>(t), rows[t]);
    }
    ASSERT_THAT(block->Forward({}, batch.View(0, batch.samples), {}), IsOk());
    ASSERT_THAT(block->Backward({}, {}), IsOk());
    std::vector<std::span<const float>> gradients;
    for (size_t t = 0; t < keys.size(); ++t) gradients.push_back(block->RowGradients(0, static_cast<int>(t)));
    ASSERT_THAT(block->ApplyUpdate(settings.optimizer.AtStep(step)), IsOk());
    ASSERT_THAT(tables->Push(step, keys, gradients, batch.samples, {}), IsOk());
    const double loss = block->LossSum(0);
    if (step == 1) first = loss;
    EXPECT_TRUE(step < 10 || loss < first) << loss << " after " << first;
    const device::CopyCounts copied = LayerMemory().counts() - before;
    EXPECT_EQ(copied.bytes_in, sent);
    EXPECT_EQ(copied.bytes_out, static_cast<int64_t>(sizeof(double)));
  }
}

TEST(LayerBlockDeviceTest, MemoryDoesNotGrow) {
  const Graph graph = ZooGraph("dcn-v2");
  LayerChain chain(graph, OnDevice());
  ExpectNoGrowth(
      [&](int64_t step) { return chain.Step(step, SomeSamples(graph, static_cast<uint64_t>(step), kGuardedSamples)); });
}

absl::Status TwoSteps(const Graph& graph, const Batch& batch) {
  const BlockSettings settings{.optimizer = *MakeOptimizer("adam", 0.01), .device = *OpenTestedDevice()};
  MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<BlockCompute> block,
                          MakeBlock(graph, {0, static_cast<int>(graph.operations.size())}, settings));
  for (int64_t step = 1; step <= 2; ++step) {
    block->BeginStep({.step = step, .version = step - 1, .micro_batches = 1, .global_samples = batch.samples});
    for (size_t t = 0; t < block->Tables().size(); ++t) {
      block->SetRows(0, static_cast<int>(t),
                     Floats(static_cast<size_t>(LayerChain::kTableRows * block->Tables()[t].columns), 0.1F));
    }
    MEDLEY_RETURN_IF_ERROR(block->Forward({}, batch.View(0, batch.samples), {}).status());
    MEDLEY_RETURN_IF_ERROR(block->Backward({}, {}).status());
    MEDLEY_RETURN_IF_ERROR(block->SquaredNorm().status());
    MEDLEY_RETURN_IF_ERROR(block->ApplyUpdate(settings.optimizer.AtStep(step)));
  }
  return block->KeepAgreed();
}

TEST(LayerBlockDeviceTest, AnAllocationThatFailsIsASentenceWhereverItIs) {
  const Graph graph = ZooGraph("deepfm");
  const Batch batch = SomeSamples(graph, 5, kGuardedSamples);
  ExpectFailedAllocationsAreSentences([&] { return TwoSteps(graph, batch); });
}

TEST(LayerBlockDeviceTest, ADeviceThatFailsIsAnErrorOfTheStep) {
  const Graph graph = ZooGraph("wide-and-deep");
  LayerChain chain(graph, OnDevice());
  const Batch batch = SomeSamples(graph, 5, kGuardedSamples);
  ASSERT_THAT(chain.Step(1, batch), IsOk());
  LayerMemory().SetBroken(true);
  const absl::Status step = chain.Step(2, batch);
  const absl::Status update = chain.blocks().front()->ApplyUpdate(*MakeOptimizer("adam", 0.01));
  LayerMemory().SetBroken(false);
  for (const absl::Status& status : {step, update}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("illegal memory access")));
  }
  EXPECT_EQ(chain.blocks().front()->AppliedStep(), 1);
}

}  // namespace
}  // namespace medley::worker::aten
