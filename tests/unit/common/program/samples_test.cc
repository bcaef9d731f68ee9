#include "common/program/samples.h"

#include <gtest/gtest.h>

#include <numeric>

#include "common/base/rng.h"
#include "common/program/compile.h"
#include "tests/unit/common/program/sample_models.h"

namespace medley::program {
namespace {

std::vector<SampleRange> Ranges(int count, const std::vector<double>& shares) {
  const std::vector<double> cuts = Cuts(shares);
  std::vector<SampleRange> ranges;
  for (int r = 0; r < static_cast<int>(shares.size()); ++r) ranges.push_back(ShareOf(count, cuts, r));
  return ranges;
}

TEST(SamplesTest, SharesOfAnyScaleAndEmptyRanges) {
  EXPECT_EQ(Ranges(10, {1, 1}), (std::vector<SampleRange>{{0, 5}, {5, 5}}));
  EXPECT_EQ(Ranges(10, {0.2, 0.5, 0.3}), (std::vector<SampleRange>{{0, 2}, {2, 5}, {7, 3}}));
  EXPECT_EQ(Ranges(1, {1, 1, 1}), (std::vector<SampleRange>{{0, 0}, {0, 1}, {1, 0}}));
  EXPECT_EQ(Ranges(0, {3, 1}), (std::vector<SampleRange>{{0, 0}, {0, 0}}));
}

TEST(SamplesTest, MicroBatches) {
  EXPECT_EQ(MicroBatch(10, 0, 3), (SampleRange{0, 3}));
  EXPECT_EQ(MicroBatch(10, 2, 3), (SampleRange{6, 4}));
  EXPECT_EQ(MicroBatch(2, 0, 3), (SampleRange{0, 0}));
}

// The samples of any two layouts: the ranges cover a micro-batch, and what the pairs of a flow move is exactly what
// every receiver needs.
TEST(SamplesTest, FlowsMoveEverySampleOnce) {
  base::Rng rng(20261123);
  for (int round = 0; round < 500; ++round) {
    model::ExecutionPlan plan = StagesPlan({{1, 1}, {3, 1}}, 1 + static_cast<int>(rng.Below(4)));
    for (model::Stage& stage : plan.stages) {
      stage.groups.clear();
      const size_t replicas = 1 + rng.Below(4);
      std::vector<double> shares;
      for (size_t r = 0; r < replicas; ++r) shares.push_back(static_cast<double>(1 + rng.Below(5)));
      const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
      for (const double share : shares) stage.groups.push_back({"p", 1, share / sum});
    }
    const auto program = Compile(plan, {"m", {Dense("a"), Dense("b"), Dense("loss", 0)}});
    ASSERT_TRUE(program.ok()) << program.status();
    const int count = static_cast<int>(rng.Below(40));
    const Binding binding(*program, count);
    int samples = 0;
    for (int m = 0; m < program->micro_batches; ++m) samples += binding.Micro(m).count;
    EXPECT_EQ(samples, count);
    for (const Flow& flow : program->flows) {
      const Layout& to = program->layouts[static_cast<size_t>(flow.to_layout)];
      for (int m = 0; m < program->micro_batches; ++m) {
        for (int r = 0; r < to.replicas(); ++r) {
          const SampleRange needed = binding.Replica(flow.to_layout, r, m);
          int next = needed.first;
          for (const Pair& pair : flow.pairs) {
            if (pair.to != r) continue;
            const SampleRange moved = binding.Moved(flow, pair, m);
            if (moved.count == 0) continue;
            EXPECT_EQ(moved.first, next);
            next = moved.end();
          }
          EXPECT_EQ(next, needed.end());
        }
      }
    }
  }
}

}  // namespace
}  // namespace medley::program
