// Blocks of Medley's own layers whose passes the test device records. Not for the build with CUDA.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/aten/layer_chain.h"
#include "tests/unit/worker/zoo/zoo_jobs.h"
#include "worker/aten/recorder.h"
#include "worker/pipeline/recorded_work.h"

namespace medley::worker::aten {
namespace {

using base::IsOk;
using ::testing::HasSubstr;

RecordingCounts CountsOf(const BlockCompute& block) { return dynamic_cast<const RecordsWork&>(block).Recordings(); }

// The first block has the tables and is not recorded, the second computes with dropout and is.
TEST(RecordedLayersTest, ABlockWithoutTablesHasTheBitsOfOneWithoutRecordings) {
  for (const std::string name : {"deepfm", "dcn-v2", "dlrm", "nce"}) {
    model::JobSpec job = testing::ZooJob(name);
    Graph graph = *BuildGraph(job);
    int first = 0;
    const int end = static_cast<int>(graph.operations.size());
    for (int o = 0; o < end; ++o) {
      Operation& operation = graph.operations[static_cast<size_t>(o)];
      if (operation.kind == OperationKind::kEmbedding) first = o + 1;
      if (operation.kind == OperationKind::kFullyConnected && o + 2 < end) operation.dropout = 0.25F;
    }
    LayerChain::Setup setup{.cuts = {first}, .on_device = {true, true}, .optimizer = *MakeOptimizer("adam", 0.01)};
    LayerChain recorded(graph, setup);
    setup.may_record = false;
    LayerChain unrecorded(graph, setup);
    const Batch batch = SomeSamples(graph, 5, 8);
    for (int64_t step = 1; step <= 8; ++step) {
      ASSERT_THAT(recorded.Step(step, batch, 1), IsOk()) << name;
      ASSERT_THAT(unrecorded.Step(step, batch, 1), IsOk()) << name;
      ASSERT_EQ(recorded.Loss(), unrecorded.Loss()) << name << ", step " << step;
      for (const DensePart part : {DensePart::kWeights, DensePart::kState}) {
        ASSERT_EQ(recorded.Part(part), unrecorded.Part(part)) << name << ", step " << step;
      }
      ASSERT_EQ(recorded.Rows(), unrecorded.Rows()) << name << ", step " << step;
    }
    const RecordingCounts counts = CountsOf(*recorded.blocks().back());
    EXPECT_GE(counts.replayed, 2 * 2 * (4 - Recorder::kWarmUp)) << name << ": both passes of each version";
    EXPECT_EQ(counts.reason, "") << name;
    EXPECT_THAT(CountsOf(*recorded.blocks().front()).reason, HasSubstr("rows of its tables")) << name;
    EXPECT_EQ(CountsOf(*unrecorded.blocks().back()).replayed, 0) << name;
  }
}

}  // namespace
}  // namespace medley::worker::aten
