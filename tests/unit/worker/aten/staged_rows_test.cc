// Rows that are copied to the device ahead of their step: the step's rows to the bit, whatever was staged and whenever
// the copies are done. On the test device a seed orders its streams. In the build with CUDA the device is a GPU.
#include "worker/aten/staged_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/aten/layer_chain.h"
#include "tests/unit/worker/aten/staged_steps.h"
#include "tests/unit/worker/zoo/zoo_jobs.h"
#include "worker/aten/layer_block.h"
#include "worker/aten/testing/tested_device.h"
#include "worker/device/testing/guarded_memory.h"
#include "worker/device/testing/needs_gpu.h"

namespace medley::worker::aten {
namespace {

using base::IsOk;
using device::GuardedMemory;

class StagedRowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device::BuiltForGpus()) MEDLEY_NEEDS_GPU();
  }
  void TearDown() override { GuardedMemory::OfProcess().ResetStreams(1); }
};

TEST_F(StagedRowsTest, HasTheRowsOfTheStep) {
  const auto tested = *OpenTestedDevice();
  const Place place(tested);
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    GuardedMemory::OfProcess().ResetStreams(seed);
    for (const int64_t ahead : {1, 2}) {
      StagedRows staged(tested, place, {kStagedColumns});
      ASSERT_THAT(StagedSteps(1, 20, ahead, staged, place), IsOk()) << "seed " << seed;
      EXPECT_GT(staged.taken(), 19 * 20);
      EXPECT_GT(staged.replaced(), 19 * 5);
      EXPECT_LT(staged.replaced(), staged.taken());
    }
    ASSERT_THAT(tested->Check(), IsOk()) << "seed " << seed;
  }
}

TEST_F(StagedRowsTest, OtherRowsAreNotTaken) {
  const auto tested = *OpenTestedDevice();
  const Place place(tested);
  StagedRows staged(tested, place, {kStagedColumns});
  const Floats rows = RowsOfStep(4, false);
  ASSERT_THAT(staged.Stage(4, 0, rows), IsOk());
  EXPECT_FALSE(staged.Take(3, 0, rows)->defined()) << "of another step";
  EXPECT_FALSE(staged.Take(4, 0, std::span(rows).first(rows.size() - kStagedColumns))->defined());
  EXPECT_FALSE(staged.Take(4, 0, rows)->defined()) << "the step has begun without them";
  ASSERT_THAT(staged.Stage(4, 0, rows), IsOk()) << "the step is repeated";
  EXPECT_TRUE(staged.Take(4, 0, rows)->defined());
}

// A model whose rows are staged, some of them too early, has the losses of one whose rows are not.
TEST_F(StagedRowsTest, ABlockTrainsAsWithoutThem) {
  const Graph graph = *BuildGraph(testing::ZooJob("deepfm"));
  const LayerChain::Setup setup{.on_device = {true}, .optimizer = *MakeOptimizer("adam", 0.01)};
  LayerChain with(graph, setup), without(graph, setup);
  auto* const block = dynamic_cast<LayerBlock*>(with.blocks().front().get());
  ASSERT_NE(block, nullptr);
  for (int64_t step = 1; step <= 12; ++step) {
    const Batch batch = SomeSamples(graph, static_cast<uint64_t>(step), 24);
    for (size_t t = 0; t < block->Tables().size() && step % 4 != 0; ++t) {
      Floats rows = with.Rows().at(std::to_string(block->Tables()[t].operation));
      if (step % 2 == 0) rows.front() += 1;
      ASSERT_THAT(block->StageRows(step, static_cast<int>(t), rows), IsOk());
    }
    ASSERT_THAT(with.Step(step, batch), IsOk());
    ASSERT_THAT(without.Step(step, batch), IsOk());
    EXPECT_EQ(with.Loss(), without.Loss()) << "step " << step;
    ASSERT_THAT(with.Infer(batch), IsOk());
  }
  EXPECT_EQ(with.Part(DensePart::kWeights), without.Part(DensePart::kWeights));
  EXPECT_EQ(with.Rows(), without.Rows());
  EXPECT_GT(block->staged()->taken(), 0);
  EXPECT_GT(block->staged()->replaced(), 0);
}

}  // namespace
}  // namespace medley::worker::aten
