#include "worker/model/losses.h"

#include <ATen/core/ivalue.h>  // first: clang needs IValue complete before Tensor.h in C++20

#include <ATen/core/Tensor.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/base/rng.h"

namespace medley::worker {
namespace {

constexpr int64_t kSamples = 9;
constexpr float kScale = 0.25F;

struct Case {
  std::string name;
  LossKind kind;
  int64_t outputs;
  std::vector<float> weights;
};

class LossesTest : public ::testing::TestWithParam<Case> {
 protected:
  LossesTest() {
    base::Rng rng(4);
    const bool classes = GetParam().kind == LossKind::kSoftmax;
    const bool numbers = GetParam().kind == LossKind::kSquared || GetParam().kind == LossKind::kAbsolute;
    outputs_.resize(static_cast<size_t>(kSamples * GetParam().outputs));
    for (float& x : outputs_) x = static_cast<float>(rng.Uniform(-4, 4));
    labels_.resize(static_cast<size_t>(classes ? kSamples : kSamples * GetParam().outputs));
    for (float& label : labels_) {
      label = numbers ? static_cast<float>(rng.Uniform(-2, 2))
                      : static_cast<float>(rng.Below(classes ? static_cast<uint64_t>(GetParam().outputs) : 2));
    }
    loss_.kind = OperationKind::kLoss;
    loss_.loss = GetParam().kind;
    loss_.class_weights = GetParam().weights;
  }

  double Loss(std::vector<float>& gradient) {
    gradient.resize(outputs_.size());
    return LossGradient(loss_, {outputs_.data(), kSamples, GetParam().outputs}, labels_, kScale,
                        {gradient.data(), kSamples, GetParam().outputs});
  }

  Operation loss_;
  std::vector<float> outputs_;
  std::vector<float> labels_;
};

TEST_P(LossesTest, TheGradientAgreesWithFiniteDifferences) {
  std::vector<float> gradient;
  Loss(gradient);
  std::vector<float> unused;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    constexpr float kStep = 1e-2F;
    const float saved = outputs_[i];
    outputs_[i] = saved + kStep;
    const double up = Loss(unused);
    const float above = outputs_[i];
    outputs_[i] = saved - kStep;
    const double down = Loss(unused);
    const double slope = (up - down) / static_cast<double>(above - outputs_[i]);
    outputs_[i] = saved;
    EXPECT_NEAR(static_cast<double>(gradient[i]), slope * static_cast<double>(kScale), 2e-4) << i;
  }
}

// The same loss and gradient by PyTorch's functions and its autograd.
TEST_P(LossesTest, AgreesWithPyTorch) {
  std::vector<float> gradient;
  const double loss = Loss(gradient);
  const int64_t outputs = GetParam().outputs;
  at::Tensor x = at::from_blob(outputs_.data(), {kSamples, outputs}, at::kFloat).clone();
  x.requires_grad_(true);
  const at::Tensor labels =
      at::from_blob(labels_.data(), {kSamples, static_cast<int64_t>(labels_.size()) / kSamples}, at::kFloat);
  std::vector<float> weights = GetParam().weights;
  at::Tensor factor = at::ones({kSamples});
  if (!weights.empty()) {
    factor = at::from_blob(weights.data(), {static_cast<int64_t>(weights.size())}, at::kFloat)
                 .index_select(0, labels.flatten().to(at::kLong));
  }
  at::Tensor each;  // loss of each sample
  switch (GetParam().kind) {
    case LossKind::kLogistic:
      each = at::binary_cross_entropy_with_logits(x, labels, {}, {}, at::Reduction::None).mean(1);
      break;
    case LossKind::kSquared:
      each = at::mse_loss(x, labels, at::Reduction::None).mean(1);
      break;
    case LossKind::kAbsolute:
      each = at::l1_loss(x, labels, at::Reduction::None).mean(1);
      break;
    case LossKind::kOutput:
      each = x.flatten();
      break;
    case LossKind::kSoftmax:
      each = at::cross_entropy_loss(x, labels.flatten().to(at::kLong), {}, at::Reduction::None);
      break;
  }
  const at::Tensor sum = each.mul(factor).sum();
  sum.backward();
  EXPECT_NEAR(loss, sum.item<double>(), 1e-5 * std::max(1.0, loss));
  const at::Tensor expected = x.grad().mul(kScale).contiguous();
  for (size_t i = 0; i < gradient.size(); ++i) {
    EXPECT_NEAR(gradient[i], expected.data_ptr<float>()[i], 1e-6F) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, LossesTest,
    ::testing::Values(Case{"Binary", LossKind::kLogistic, 1, {}},
                      Case{"WeightedBinary", LossKind::kLogistic, 1, {0.5F, 3}},
                      Case{"Labels", LossKind::kLogistic, 4, {}}, Case{"Squared", LossKind::kSquared, 1, {}},
                      Case{"Absolute", LossKind::kAbsolute, 1, {}}, Case{"SeveralSquared", LossKind::kSquared, 3, {}},
                      Case{"SeveralAbsolute", LossKind::kAbsolute, 3, {}}, Case{"Output", LossKind::kOutput, 1, {}},
                      Case{"Classes", LossKind::kSoftmax, 5, {}},
                      Case{"WeightedClasses", LossKind::kSoftmax, 3, {0.25F, 1, 4}}),
    [](const auto& tested) { return tested.param.name; });

// A sample's loss is the mean over its tokens with a label.
TEST(LossTest, TokensWithoutALabelCountForNothing) {
  Operation loss;
  loss.loss = LossKind::kSoftmax;
  const std::vector<float> outputs = {1, 2, 3, 0, 5, -1, 4, 4}, labels = {1, -100, 0, 1};
  std::vector<float> gradient(outputs.size(), 9), alone(2);
  const double sum = LossGradient(loss, {outputs.data(), 1, 8}, labels, 0.5F, {gradient.data(), 1, 8});
  double expected = 0;
  for (const size_t token : {0, 2, 3}) {
    expected += LossGradient(loss, {outputs.data() + 2 * token, 1, 2}, std::vector<float>{labels[token]}, 0.5F / 3,
                             {alone.data(), 1, 2}) /
                3;
    for (size_t i = 0; i < 2; ++i) EXPECT_FLOAT_EQ(gradient[2 * token + i], alone[i]);
  }
  EXPECT_NEAR(sum, expected, 1e-6);
  EXPECT_EQ(gradient[2], 0);
  EXPECT_EQ(gradient[3], 0);
  const std::vector<float> none(4, -100);
  EXPECT_EQ(LossGradient(loss, {outputs.data(), 1, 8}, none, 1, {gradient.data(), 1, 8}), 0);
}

TEST(LossTest, LargeOutputsStayFinite) {
  const std::vector<float> outputs = {-20000, 3, 20000};
  std::vector<float> gradient(3);
  Operation loss{.kind = OperationKind::kLoss, .loss = LossKind::kSoftmax};
  EXPECT_EQ(LossGradient(loss, {outputs.data(), 1, 3}, std::vector<float>{0}, 1, {gradient.data(), 1, 3}), 40000);
  EXPECT_EQ(gradient, (std::vector<float>{-1, 0, 1}));
  loss.loss = LossKind::kLogistic;
  const double all =
      LossGradient(loss, {outputs.data(), 1, 3}, std::vector<float>{0, 1, 0}, 1, {gradient.data(), 1, 3});
  EXPECT_TRUE(std::isfinite(all));
  for (const float x : gradient) EXPECT_TRUE(std::isfinite(x));
}

// As PyTorch's losses with weights: each sample's loss and gradient times its weight.
TEST(LossTest, WeightsOfSamplesMultiplyLossAndGradient) {
  const std::vector<float> outputs = {1, 2, 3, 0, 5, -1, 4, 4, 0}, weights = {0.5F, 0, 3};
  for (const LossKind kind : {LossKind::kLogistic, LossKind::kSquared, LossKind::kAbsolute, LossKind::kSoftmax}) {
    Operation loss;
    loss.loss = kind;
    const size_t width = kind == LossKind::kSoftmax ? 1 : 3;
    if (kind == LossKind::kSoftmax) loss.class_weights = {1, 2, 0.5F};
    std::vector<float> labels(3 * width), gradient(9), alone(3);
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<float>(i % 2);
    const double sum = LossGradient(loss, {outputs.data(), 3, 3}, labels, 0.25F, {gradient.data(), 3, 3}, weights);
    double expected = 0;
    for (size_t i = 0; i < 3; ++i) {
      const std::span<const float> label = std::span(labels).subspan(i * width, width);
      expected += static_cast<double>(weights[i]) *
                  LossGradient(loss, {outputs.data() + 3 * i, 1, 3}, label, 0.25F, {alone.data(), 1, 3});
      for (size_t k = 0; k < 3; ++k) EXPECT_FLOAT_EQ(gradient[3 * i + k], weights[i] * alone[k]);
    }
    EXPECT_NEAR(sum, expected, 1e-9);
  }
}

}  // namespace
}  // namespace medley::worker
