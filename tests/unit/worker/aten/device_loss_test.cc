// Losses and masks that a device computes, against those of the host.
#include "worker/aten/device_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "worker/aten/device_mask.h"
#include "worker/aten/place.h"
#include "worker/aten/testing/tested_device.h"
#include "worker/data/array_dataset.h"
#include "worker/device/testing/needs_gpu.h"
#include "worker/model/losses.h"

namespace medley::worker::aten {
namespace {

struct LossCase {
  std::string name;
  LossKind kind = LossKind::kLogistic;
  int outputs = 1;
  int labels = 1;   // a sample
  int classes = 2;  // of a label; 0: any number
  int negatives = 0;
  bool class_weights = false;
};

class DeviceLossTest : public ::testing::TestWithParam<LossCase> {
 protected:
  void SetUp() override {
    if (device::BuiltForGpus()) MEDLEY_NEEDS_GPU();
  }
};

INSTANTIATE_TEST_SUITE_P(Losses, DeviceLossTest,
                         ::testing::Values(LossCase{"logistic"},
                                           LossCase{"logisticWeighted", LossKind::kLogistic, 1, 1, 2, 0, true},
                                           LossCase{"multiLabel", LossKind::kLogistic, 3, 3},
                                           LossCase{"drawn", LossKind::kLogistic, 5, 1, 2, 4},
                                           LossCase{"drawnWeighted", LossKind::kLogistic, 5, 1, 2, 4, true},
                                           LossCase{"squared", LossKind::kSquared, 2, 2, 0},
                                           LossCase{"absolute", LossKind::kAbsolute, 2, 2, 0},
                                           LossCase{"softmax", LossKind::kSoftmax, 4, 1, 4},
                                           LossCase{"softmaxWeighted", LossKind::kSoftmax, 4, 1, 4, 0, true},
                                           LossCase{"tokens", LossKind::kSoftmax, 12, 3, 4},
                                           LossCase{"tokensWeighted", LossKind::kSoftmax, 12, 3, 4, 0, true},
                                           LossCase{"output", LossKind::kOutput, 1, 1, 0}),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(DeviceLossTest, IsThatOfTheHost) {
  const LossCase& tested = GetParam();
  const Place place(*OpenTestedDevice());
  Operation loss;
  loss.kind = OperationKind::kLoss;
  loss.loss = tested.kind;
  loss.negatives = tested.negatives;
  if (tested.class_weights) loss.class_weights = {0.5F, 2.0F, 1.5F, 0.25F};
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 3);
  for (const int64_t samples : {1, 9}) {
    for (const bool weighted : {false, true}) {
      std::vector<float> outputs(static_cast<size_t>(samples * tested.outputs)), weights;
      std::vector<float> labels(static_cast<size_t>(samples * tested.labels));
      for (float& value : outputs) value = normal(random);
      outputs.front() = 90;  // whose exponential is no float32
      for (float& label : labels) {
        label =
            tested.classes == 0 ? normal(random) : static_cast<float>(random() % static_cast<unsigned>(tested.classes));
      }
      if (tested.labels > 1 && tested.kind == LossKind::kSoftmax) labels.front() = kNoLabel;
      for (int64_t i = 0; weighted && i < samples; ++i) weights.push_back(0.5F + static_cast<float>(i));
      std::vector<float> expected(outputs.size());
      const int columns = tested.outputs;
      const double sum = LossGradient(loss, {outputs.data(), static_cast<int>(samples), columns}, labels, 0.125F,
                                      {expected.data(), static_cast<int>(samples), columns}, weights);
      const auto placed = [&](const std::vector<float>& values, at::IntArrayRef sizes) {
        return values.empty() ? at::Tensor() : *place.ToPlace(Over(values, sizes));
      };
      const DeviceLoss found =
          LossOnDevice(loss, placed(outputs, {samples, columns}), placed(labels, {samples, tested.labels}), 0.125F,
                       placed(weights, {samples}), placed(loss.class_weights, {4}));
      EXPECT_NEAR(place.ToHost(found.sum)->item<double>(), sum, 1e-5 * std::max(1.0, std::abs(sum)));
      std::vector<float> gradient(outputs.size());
      ASSERT_TRUE(place.CopyOut(found.gradient.contiguous(), gradient).ok());
      EXPECT_THAT(gradient, ::testing::Pointwise(::testing::FloatNear(2e-7F), expected));
    }
  }
}

TEST(DeviceMaskTest, HasTheNumbersOfTheHost) {
  if (device::BuiltForGpus()) MEDLEY_NEEDS_GPU();
  const auto device = *OpenTestedDevice();
  const Place place(device);
  const device::CopyCounts before = device->counts();
  for (const int64_t columns : {1, 4, 7, 258}) {
    // Numbers with more than 32 bits, of which the low ones count.
    const Draw first{.seed = 0xFEDCBA9876543210, .call = 3, .step = (int64_t{1} << 33) + 5, .sample = 4294967294};
    const at::Tensor masks = MasksOnDevice(first, 0.7, 5, columns, place.Floats());
    EXPECT_EQ(device->counts() - before, device::CopyCounts());
    const at::Tensor host = masks.to(at::kCPU).contiguous();
    for (int64_t row = 0; row < 5; ++row) {
      std::vector<float> expected(static_cast<size_t>(columns));
      Draw draw = first;
      draw.sample += row;
      DropoutMask(draw, 0.7, expected);
      const float* const values = host.data_ptr<float>() + row * columns;
      EXPECT_EQ(std::vector<float>(values, values + columns), expected) << columns << " columns, row " << row;
    }
  }
}

}  // namespace
}  // namespace medley::worker::aten
