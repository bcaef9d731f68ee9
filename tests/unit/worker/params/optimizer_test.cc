#include "worker/params/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/base/file.h"
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

// The values after 50 steps of torch.optim.Adam and SparseAdam (tests/golden/optimizer/make_adam.py), whose rows have a
// gradient in some steps only.
class AdamReferenceTest : public testing::TestWithParam<const char*> {};

TEST_P(AdamReferenceTest, EqualsTorchOver50Steps) {
  const char* source = std::getenv("MEDLEY_SOURCE_DIR");
  const auto text =
      base::ReadFile(std::filesystem::path(source == nullptr ? "." : source) / "tests/golden/optimizer/adam.json");
  ASSERT_TRUE(text.ok()) << text.status();
  const auto all = nlohmann::json::parse(*text, nullptr, false);
  const auto& reference = all.at(GetParam());
  const size_t rows = all.at("rows").get<size_t>();
  const size_t columns = all.at("columns").get<size_t>();
  Optimizer optimizer = *MakeOptimizer("adam", all.at("learning_rate").get<double>());
  optimizer.beta1 = all.at("beta1").get<double>();
  std::vector<float> weights(rows * columns);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(static_cast<int>(i * 5 % 11) - 5) / 8;
  std::vector<float> state(weights.size() * StateFloats(optimizer.kind));
  for (size_t step = 1; step <= 50; ++step) {
    const Optimizer now = optimizer.AtStep(static_cast<int64_t>(step));
    for (size_t row = 0; row < rows; ++row) {
      if (std::string_view(GetParam()) == "sparse" && (row + step) % 3 != 0) continue;
      std::vector<float> gradient(columns);
      for (size_t c = 0; c < columns; ++c) {
        gradient[c] = static_cast<float>(static_cast<int>(((row * columns + c) * 7 + step * 13) % 17) - 8) / 16;
      }
      Apply(now, std::span(weights).subspan(row * columns, columns),
            std::span(state).subspan(row * columns * 2, columns * 2), gradient);
    }
    if (!reference.contains(std::to_string(step))) continue;
    const auto expected = reference.at(std::to_string(step)).get<std::vector<float>>();
    ASSERT_EQ(expected.size(), weights.size());
    for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], expected[i], 2e-6F) << step << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Torch, AdamReferenceTest, testing::Values("dense", "sparse"),
                         [](const auto& at) { return std::string(at.param); });

// Algorithm 1 of McMahan et al. 2013 ("Ad click prediction: a view from the trenches") in double precision, with L1 and
// L2. Weights that do not begin at 0 have the z of which they follow.
struct FtrlReference {
  double rate = 0.1, beta = 1, l1 = 0, l2 = 0;
  struct Weight {
    double w = 0, n = 0, z = 0;
  };
  double Of(double n, double z) const {
    return std::abs(z) <= l1 ? 0 : -(z - std::copysign(l1, z)) / ((beta + std::sqrt(n)) / rate + l2);
  }
  void Begin(Weight& weight) const {
    if (weight.w != 0) weight.z = -(weight.w * (beta / rate + l2) + std::copysign(l1, weight.w));
    EXPECT_NEAR(Of(0, weight.z), weight.w, 1e-12);
  }
  void Update(Weight& weight, double g) const {
    const double sigma = (std::sqrt(weight.n + g * g) - std::sqrt(weight.n)) / rate;
    weight.z += g - sigma * weight.w;
    weight.n += g * g;
    weight.w = Of(weight.n, weight.z);
  }
};

// Random gradients, of which some steps have none; half of the weights begin at 0, as in the paper.
TEST(OptimizerTest, FtrlEqualsItsPaper) {
  for (const FtrlReference& reference :
       {FtrlReference{}, FtrlReference{.rate = 0.05, .beta = 0.5, .l1 = 0.3}, FtrlReference{.rate = 0.5, .l2 = 2},
        FtrlReference{.rate = 0.2, .beta = 2, .l1 = 0.1, .l2 = 0.5}}) {
    Optimizer optimizer = *MakeOptimizer("ftrl", reference.rate);
    EXPECT_EQ(optimizer.ftrl_beta, 1);
    optimizer.ftrl_beta = static_cast<float>(reference.beta);
    optimizer.l1 = static_cast<float>(reference.l1);
    optimizer.l2 = static_cast<float>(reference.l2);
    constexpr size_t kWeights = 64;
    std::vector<float> weights(kWeights), state(2 * kWeights), gradient(kWeights);
    std::vector<FtrlReference::Weight> expected(kWeights);
    base::Rng random(7);
    const auto uniform = [&](double most) { return static_cast<float>(random.Uniform(-most, most)); };
    for (size_t i = 0; i < kWeights; ++i) {
      weights[i] = i % 2 == 0 ? 0 : uniform(0.2);
      expected[i].w = weights[i];
      reference.Begin(expected[i]);
    }
    size_t zeros = 0;
    for (int step = 0; step < 200; ++step) {
      for (size_t i = 0; i < kWeights; ++i) {
        gradient[i] = (static_cast<size_t>(step) + i) % 3 == 0 ? 0 : uniform(0.3);
        reference.Update(expected[i], gradient[i]);
      }
      Apply(optimizer, weights, state, gradient);
      for (size_t i = 0; i < kWeights; ++i) {
        ASSERT_NEAR(weights[i], expected[i].w, 1e-6) << "step " << step << ", weight " << i;
        zeros += step >= 20 && weights[i] == 0 ? 1 : 0;
      }
    }
    EXPECT_EQ(zeros > 0, reference.l1 > 0) << zeros << " zeros: L1 makes weights sparse, L2 does not";
  }
}

TEST(OptimizerTest, FtrlKeepsAWeightWithoutGradient) {
  Optimizer optimizer = *MakeOptimizer("ftrl", 0.1);
  optimizer.l1 = 0.5F;
  optimizer.ftrl_beta = 0;
  const std::vector<float> initial = {0.25F, -0.25F, 0, 1e-30F};
  std::vector<float> weights = initial, state(8), none(4);
  for (int step = 0; step < 3; ++step) Apply(optimizer, weights, state, none);
  EXPECT_EQ(weights, initial);
  EXPECT_EQ(state, std::vector<float>(8));
  Apply(optimizer, weights, state, std::vector<float>{1e-30F, 0, 0, 0});
  EXPECT_EQ(weights, initial) << "its square is 0";
  Apply(optimizer, weights, state, std::vector<float>{1, 1, 1, 1});
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isfinite(weights[i])) << i;
}

TEST(OptimizerTest, AdamInPlaceAndInOtherSpansGivesTheSameBits) {
  const Optimizer optimizer = MakeOptimizer("adam", 0.05)->AtStep(3);
  for (const size_t size : {1U, 7U, 8U, 1003U}) {
    std::vector<float> weights = Random(size, 4);
    std::vector<float> state = Random(2 * size, 5);
    for (float& x : state) x = std::abs(x);
    const std::vector<float> gradient = Random(size, 6);
    std::vector<float> to(size);
    std::vector<float> to_state(2 * size);
    ApplyTo(optimizer, weights, state, gradient, to, to_state);
    const std::vector<float> before = weights;
    Apply(optimizer, weights, state, gradient);
    EXPECT_EQ(weights, to);
    EXPECT_EQ(state, to_state);
    EXPECT_NE(weights, before);
  }
}

TEST(OptimizerTest, SaysHowMuchStateItKeeps) {
  EXPECT_EQ(StateFactor(OptimizerKind::kSgd), 2);
  EXPECT_EQ(StateFactor(OptimizerKind::kAdagrad), 3);
  EXPECT_EQ(StateFactor(OptimizerKind::kAdam), 4);
  EXPECT_EQ(StateFactor(OptimizerKind::kRmsprop), 3);
  EXPECT_EQ(StateFactor(OptimizerKind::kRmspropMomentum), 4);
  EXPECT_EQ(StateFactor(OptimizerKind::kFtrl), 4);
  EXPECT_EQ(RowFloats(OptimizerKind::kSgd, 4), 4U);
  EXPECT_EQ(RowFloats(OptimizerKind::kAdagrad, 4), 8U);
  EXPECT_EQ(RowFloats(OptimizerKind::kAdam, 4), 12U);
  EXPECT_TRUE(IsRowWidth(OptimizerKind::kSgd, 4, 4) && IsRowWidth(OptimizerKind::kSgd, 4, 8));
  EXPECT_TRUE(IsRowWidth(OptimizerKind::kAdam, 4, 12) && !IsRowWidth(OptimizerKind::kAdam, 4, 8));
  EXPECT_FALSE(IsRowWidth(OptimizerKind::kSgd, 4, 12));
}

TEST(OptimizerTest, RefusesUnknownNamesAndRates) {
  EXPECT_FALSE(MakeOptimizer("adadelta", 0.1).ok());
  EXPECT_FALSE(MakeOptimizer("sgd", 0).ok());
  EXPECT_FALSE(MakeOptimizer("sgd", std::nan("")).ok());
}

}  // namespace
}  // namespace medley::worker
