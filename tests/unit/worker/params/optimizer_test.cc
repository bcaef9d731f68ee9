#include "worker/params/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/base/rng.h"

namespace medley::worker {
namespace {

std::vector<float> Random(size_t size, uint64_t seed) {
  base::Rng rng(seed);
  std::vector<float> values(size);
  for (float& x : values) x = static_cast<float>(rng.Uniform(-1, 1));
  return values;
}

TEST(OptimizerTest, AdagradFollowsItsFormula) {
  const Optimizer optimizer = *MakeOptimizer("adagrad", 0.1);
  for (size_t size : {1U, 7U, 8U, 1003U}) {
    std::vector<float> weights = Random(size, 1);
    std::vector<float> state(size, 0.25F);
    const std::vector<float> gradient = Random(size, 2);
    const std::vector<float> before = weights;
    Apply(optimizer, weights, state, gradient);
    for (size_t i = 0; i < size; ++i) {
      const double g = static_cast<double>(gradient[i]);
      EXPECT_NEAR(static_cast<double>(state[i]), 0.25 + g * g, 1e-6);
      EXPECT_NEAR(static_cast<double>(weights[i]), static_cast<double>(before[i]) - 0.1 * g / std::sqrt(0.25 + g * g),
                  1e-6);
    }
  }
}

TEST(OptimizerTest, SgdFollowsItsFormulaAndNeedsNoState) {
  const Optimizer optimizer = *MakeOptimizer("sgd", 0.5);
  std::vector<float> weights = {1, 2, 3};
  Apply(optimizer, weights, {}, std::vector<float>{2, 0, -2});
  EXPECT_EQ(weights, (std::vector<float>{0, 2, 4}));
}

TEST(OptimizerTest, AZeroGradientChangesNothing) {
  const Optimizer optimizer = *MakeOptimizer("adagrad", 0.1);
  std::vector<float> weights = {1, -2};
  std::vector<float> state = {0, 3};
  Apply(optimizer, weights, state, std::vector<float>{0, 0});
  EXPECT_EQ(weights, (std::vector<float>{1, -2}));
  EXPECT_EQ(state, (std::vector<float>{0, 3}));
}

// An update row by row (as on a server) and one of all values (as in a trainer) must give the same bits.
TEST(OptimizerTest, PiecesEqualTheWholeBitwise) {
  const Optimizer optimizer = *MakeOptimizer("adagrad", 0.05);
  const std::vector<float> gradient = Random(1000, 3);
  std::vector<float> whole = Random(1000, 4);
  std::vector<float> pieces = whole;
  std::vector<float> to(1000);
  std::vector<float> whole_state(1000, 0.1F);
  std::vector<float> pieces_state = whole_state;
  std::vector<float> to_state(1000);
  ApplyTo(optimizer, whole, whole_state, gradient, to, to_state);
  Apply(optimizer, whole, whole_state, gradient);
  for (size_t at = 0; at < 1000; at += 10) {
    Apply(optimizer, std::span(pieces).subspan(at, 10), std::span(pieces_state).subspan(at, 10),
          std::span(gradient).subspan(at, 10));
  }
  EXPECT_EQ(whole, pieces);
  EXPECT_EQ(whole_state, pieces_state);
  EXPECT_EQ(whole, to);
  EXPECT_EQ(whole_state, to_state);
}

TEST(OptimizerTest, RefusesUnknownNamesAndRates) {
  EXPECT_FALSE(MakeOptimizer("adam", 0.1).ok());
  EXPECT_FALSE(MakeOptimizer("sgd", 0).ok());
  EXPECT_FALSE(MakeOptimizer("sgd", std::nan("")).ok());
}

}  // namespace
}  // namespace medley::worker
