// Tests that every set of instructions of this processor computes the same bits.
#include "worker/params/update_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "common/base/rng.h"
#include "worker/params/row_update.h"

namespace medley::worker {
namespace {

// Usual numbers, and some that are easy to get wrong.
std::vector<float> Numbers(size_t size, base::Rng& rng, bool positive) {
  constexpr float kOdd[] = {0.0F, -0.0F, 1e-30F, -1e-42F, 3e37F, std::numeric_limits<float>::infinity()};
  std::vector<float> values(size);
  for (float& value : values) {
    value = rng.Below(40) == 0 ? kOdd[rng.Below(std::size(kOdd))] : static_cast<float>(rng.Uniform(-2, 2));
    if (positive) value = std::abs(value);
  }
  return values;
}

std::vector<uint32_t> Bits(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::isnan(value) ? 0x7fc00000U : std::bit_cast<uint32_t>(value));
  return bits;
}

std::vector<Optimizer> EveryOptimizer() {
  std::vector<Optimizer> all;
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kAdagrad, OptimizerKind::kAdam, OptimizerKind::kMomentum,
        OptimizerKind::kAdamW, OptimizerKind::kRmsprop, OptimizerKind::kRmspropMomentum, OptimizerKind::kFtrl}) {
    for (const float decay : {0.0F, 0.1F}) {
      all.push_back({.kind = kind, .learning_rate = 0.3F, .epsilon = 1e-8F, .momentum = 0.9F, .weight_decay = decay});
    }
  }
  all.push_back({.kind = OptimizerKind::kMomentum, .momentum = 0.5F, .nesterov = true});
  all.push_back({.kind = OptimizerKind::kFtrl, .learning_rate = 0.3F, .ftrl_beta = 0.5F, .l1 = 0.25F, .l2 = 0.1F});
  return all;
}

TEST(UpdateKernelsTest, EveryProcessorComputesTheSameBits) {
  ASSERT_EQ(AvailableInstructions().front(), Instructions::kBaseline);
  base::Rng rng(1);
  for (const Optimizer& at_start : EveryOptimizer()) {
    const Optimizer optimizer = at_start.AtStep(3);
    const size_t floats = StateFloats(optimizer.kind);
    for (size_t size = 0; size <= 70; ++size) {
      const std::vector<float> weights = Numbers(size, rng, false), gradient = Numbers(size, rng, false);
      const std::vector<float> state = Numbers(size * floats, rng, true);
      std::vector<uint32_t> expected;
      for (const Instructions instructions : AvailableInstructions()) {
        std::vector<float> row = weights;  // unaligned if `size` is no multiple of the width
        row.insert(row.end(), state.begin(), state.end());
        UpdateKernelOf(optimizer, instructions)(
            {row.data(), row.data() + size, gradient.data(), row.data(), row.data() + size, size},
            FactorsOf(optimizer));
        if (expected.empty()) expected = Bits(row);
        ASSERT_EQ(Bits(row), expected) << static_cast<int>(optimizer.kind) << " " << static_cast<int>(instructions)
                                       << " " << size;
      }
      std::vector<float> row = weights, apart = weights, apart_state = state;
      row.insert(row.end(), state.begin(), state.end());
      RowUpdate(optimizer, size)(row.data(), gradient.data());
      ASSERT_EQ(Bits(row), expected);
      Apply(optimizer, apart, apart_state, gradient);
      apart.insert(apart.end(), apart_state.begin(), apart_state.end());
      ASSERT_EQ(Bits(apart), expected);
    }
  }
}

TEST(UpdateKernelsTest, EveryProcessorAddsTheSameBits) {
  base::Rng rng(2);
  for (size_t size = 0; size <= 70; ++size) {
    const std::vector<float> values = Numbers(size, rng, false), start = Numbers(size, rng, false);
    std::vector<float> expected = start;
    for (size_t i = 0; i < size; ++i) expected[i] += values[i];
    for (const Instructions instructions : AvailableInstructions()) {
      std::vector<float> sums = start;
      AddKernelOf(instructions)(sums.data(), values.data(), size);
      ASSERT_EQ(Bits(sums), Bits(expected)) << static_cast<int>(instructions);
    }
  }
}

}  // namespace
}  // namespace medley::worker
