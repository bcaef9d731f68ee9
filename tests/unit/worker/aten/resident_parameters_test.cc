// Parameters in the memory of a device against those in the host's: after steps of every optimizer, an undo, a copy to
// the host and back. In the build with CUDA the device is a GPU.
#include "worker/aten/resident_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "common/base/testing/status_matchers.h"
#include "worker/aten/testing/tested_device.h"
#include "worker/device/testing/needs_gpu.h"

namespace medley::worker::aten {
namespace {

using base::IsOk;
using base::StatusIs;

// What an update treats in four ways, in an order that is not that of the device, with sizes that are no multiple of
// the alignment.
std::vector<ParameterSpec> Specs() {
  const auto spec = [](const char* name, int64_t rows, int64_t columns, ParameterRole role, int copy_of) {
    ParameterSpec made;
    made.name = name;
    made.rows = rows;
    made.columns = columns;
    made.role = role;
    made.copy_of = copy_of;
    made.initializer = Initializer::kXavierUniform;
    return made;
  };
  return {spec("mean", 1, 7, ParameterRole::kStatistic, -1), spec("weight", 13, 9, ParameterRole::kTrained, -1),
          spec("mask", 3, 3, ParameterRole::kFrozen, -1),    spec("shared", 5, 30, ParameterRole::kTrained, 2),
          spec("bias", 1, 9, ParameterRole::kTrained, -1),   spec("shared", 5, 30, ParameterRole::kTrained, -1)};
}

struct Rule {
  std::string name;
  Optimizer optimizer;
};

std::vector<Rule> Rules() {
  std::vector<Rule> rules;
  for (const char* name : {"sgd", "adagrad", "adam", "adamw", "rmsprop", "ftrl"}) {
    rules.push_back({name, *MakeOptimizer(name, 0.01)});
  }
  Optimizer momentum = *MakeOptimizer("sgd", 0.01);
  momentum.kind = OptimizerKind::kMomentum;
  momentum.momentum = 0.9F;
  momentum.weight_decay = 0.01F;
  rules.push_back({"momentum", momentum});
  momentum.nesterov = true;
  rules.push_back({"nesterov", momentum});
  Optimizer rmsprop = *MakeOptimizer("rmsprop", 0.01);
  rmsprop.kind = OptimizerKind::kRmspropMomentum;
  rmsprop.momentum = 0.5F;
  rules.push_back({"rmspropmomentum", rmsprop});
  Optimizer adam = *MakeOptimizer("adam", 0.01);
  adam.weight_decay = 0.1F;
  rules.push_back({"adamdecay", adam});
  Optimizer adagrad = *MakeOptimizer("adagrad", 0.05);
  adagrad.initial_state = 0.1F;
  rules.push_back({"adagradstate", adagrad});
  return rules;
}

// The same parameters of the host and of the device.
struct Pair {
  std::unique_ptr<ParameterStore> host, device;
  Place place{nullptr};
  std::shared_ptr<device::CountingDevice> counts;
};

class ResidentParametersTest : public ::testing::TestWithParam<Rule> {
 protected:
  void SetUp() override {
    if (device::BuiltForGpus()) MEDLEY_NEEDS_GPU();
  }

  Pair Make(int kept, const Optimizer& optimizer) const {
    Pair pair;
    pair.counts = *OpenTestedDevice();
    pair.place = Place(pair.counts);
    pair.host = MakeParameterStore(Specs(), optimizer, 5, kept, Place(nullptr));
    pair.device = MakeParameterStore(Specs(), optimizer, 5, kept, pair.place);
    return pair;
  }
  Pair Make(int kept = 1) const { return Make(kept, GetParam().optimizer); }

  // Adds gradients to both, some twice, some not at all, and returns nothing to compare.
  static void AddGradients(Pair& pair, int64_t step) {
    const std::vector<ParameterSpec> specs = Specs();
    std::mt19937 random(static_cast<unsigned>(step));
    std::normal_distribution<float> normal(0, 0.1F);
    pair.host->BeginGradients(step);
    pair.device->BeginGradients(step);
    for (size_t p = 0; p < specs.size(); ++p) {
      for (int micro = 0; micro < 2; ++micro) {
        if (specs[p].name == "bias" && step % 3 == 0) continue;
        std::vector<float> values(static_cast<size_t>(specs[p].Size()));
        std::ranges::generate(values, [&] { return normal(random); });
        const at::Tensor gradient = Over(values, {specs[p].rows, specs[p].columns});
        pair.host->AddGradient(p, gradient, 0.5F);
        pair.device->AddGradient(p, *pair.place.ToPlace(gradient), 0.5F);
      }
    }
  }

  void Step(Pair& pair, int64_t step) const {
    AddGradients(pair, step);
    ASSERT_THAT(pair.host->ApplyUpdate(GetParam().optimizer.AtStep(step)), IsOk());
    ASSERT_THAT(pair.device->ApplyUpdate(GetParam().optimizer.AtStep(step)), IsOk());
  }

  static std::vector<float> Values(ParameterStore& store, size_t parameter, DensePart part, size_t floats) {
    std::vector<float> values(floats);
    EXPECT_THAT(store.Read(parameter, part, 0, values), IsOk());
    return values;
  }

  // The largest difference, relative where values are larger than 1.
  double Difference(Pair& pair) const {
    const std::vector<ParameterSpec> specs = Specs();
    const size_t state = StateFloats(GetParam().optimizer.kind);
    double largest = 0;
    for (size_t p = 0; p < specs.size(); ++p) {
      const auto size = static_cast<size_t>(specs[p].Size());
      for (const DensePart part : {DensePart::kWeights, DensePart::kState}) {
        const size_t floats = part == DensePart::kState ? size * state : size;
        const std::vector<float> host = Values(*pair.host, p, part, floats);
        const std::vector<float> device = Values(*pair.device, p, part, floats);
        for (size_t i = 0; i < floats; ++i) {
          const double off = std::abs(static_cast<double>(host[i]) - device[i]) / std::max(1.0F, std::abs(host[i]));
          largest = std::isnan(off) ? 1e9 : std::max(largest, off);
        }
      }
    }
    return largest;
  }
};

INSTANTIATE_TEST_SUITE_P(Optimizers, ResidentParametersTest, ::testing::ValuesIn(Rules()),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(ResidentParametersTest, AreAsThoseOfTheHostAfter200Steps) {
  for (const int kept : {0, 1, 3}) {
    Pair pair = Make(kept);
    EXPECT_EQ(Difference(pair), 0) << "both begin with the same values";
    for (int64_t step = 1; step <= 200; ++step) Step(pair, step);
    const double difference = Difference(pair);
    std::printf("%s, %d kept: largest difference %.1e\n", GetParam().name.c_str(), kept, difference);
    EXPECT_LT(difference, 1e-6);
    EXPECT_EQ(pair.device->applied_step(), 200);
    EXPECT_EQ(pair.device->undo_limit(), pair.host->undo_limit());
  }
}

TEST_P(ResidentParametersTest, AStepCopiesNoParameter) {
  Pair pair = Make();
  for (int64_t step = 1; step <= 3; ++step) {
    AddGradients(pair, step);
    const device::CopyCounts before = pair.counts->counts();
    ASSERT_THAT(pair.device->ApplyUpdate(GetParam().optimizer.AtStep(step)), IsOk());
    EXPECT_EQ(pair.counts->counts() - before, device::CopyCounts());
  }
}

TEST_P(ResidentParametersTest, UndoReachesTheVersionsThatAreKept) {
  Pair pair = Make(2);
  for (int64_t step = 1; step <= 5; ++step) Step(pair, step);
  for (ParameterStore* store : {pair.host.get(), pair.device.get()}) {
    EXPECT_THAT(store->UndoTo(2), StatusIs(absl::StatusCode::kFailedPrecondition));
    ASSERT_THAT(store->UndoTo(3), IsOk());
    store->ForgetGradients(4);
  }
  EXPECT_LT(Difference(pair), 1e-6);
  for (int64_t step = 4; step <= 8; ++step) Step(pair, step);
  EXPECT_LT(Difference(pair), 1e-6);
  EXPECT_EQ(pair.device->undo_limit(), 6);
}

TEST_P(ResidentParametersTest, KeepsWhatReplicasAgreedOn) {
  Pair pair = Make();
  Step(pair, 1);
  for (ParameterStore* store : {pair.host.get(), pair.device.get()}) ASSERT_THAT(store->KeepAgreed(), IsOk());
  for (int64_t step = 2; step <= 6; ++step) Step(pair, step);
  for (ParameterStore* store : {pair.host.get(), pair.device.get()}) {
    EXPECT_EQ(store->agreed_step(), 1);
    EXPECT_EQ(store->undo_limit(), 1);
    ASSERT_THAT(store->UndoTo(1), IsOk());
    store->ForgetGradients(2);
  }
  EXPECT_LT(Difference(pair), 1e-6);
  Step(pair, 2);
  EXPECT_LT(Difference(pair), 1e-6);
  pair.device->ForgetAgreed();
  EXPECT_EQ(pair.device->agreed_step(), 2);
}

TEST_P(ResidentParametersTest, WhatIsWrittenIsReadInAnyPieces) {
  Pair pair = Make();
  Step(pair, 1);
  const std::vector<ParameterSpec> specs = Specs();
  const size_t state = StateFloats(GetParam().optimizer.kind);
  for (size_t p = 0; p < specs.size(); ++p) {
    for (const DensePart part : {DensePart::kWeights, DensePart::kState, DensePart::kGradient}) {
      const size_t floats = static_cast<size_t>(specs[p].Size()) * (part == DensePart::kState ? state : 1);
      std::vector<float> values(floats);
      float next = static_cast<float>(p);
      std::ranges::generate(values, [&] { return next += 0.25F; });
      for (size_t first = 0; first < floats; first += 5) {  // also across the two halves of a state
        const size_t count = std::min<size_t>(5, floats - first);
        ASSERT_THAT(pair.device->Write(p, part, first, std::span(values).subspan(first, count)), IsOk());
      }
      EXPECT_EQ(Values(*pair.device, p, part, floats), values);
    }
  }
  pair.device->SetAppliedStep(9);
  EXPECT_EQ(pair.device->applied_step(), 9);
  EXPECT_EQ(pair.device->undo_limit(), 9);
}

// As reductions over replicas, a clipping norm and shared parameters do.
TEST_P(ResidentParametersTest, GradientsThatTheHostChangesAreApplied) {
  Pair pair = Make();
  AddGradients(pair, 1);
  for (ParameterStore* store : {pair.host.get(), pair.device.get()}) {
    const absl::StatusOr<std::span<float>> gradients = store->GradientsOnHost();
    ASSERT_THAT(gradients, IsOk());
    for (size_t i = 0; i < gradients->size(); ++i) (*gradients)[i] += 0.001F * static_cast<float>(i);
    ASSERT_THAT(store->SumCopies("shared"), IsOk());
    EXPECT_THAT(store->SumCopies("none"), StatusIs(absl::StatusCode::kInternal));
    ASSERT_THAT(store->ScaleGradients(0.5F), IsOk());
  }
  const absl::StatusOr<double> host = pair.host->SquaredNorm(), device = pair.device->SquaredNorm();
  ASSERT_THAT(host, IsOk());
  ASSERT_THAT(device, IsOk());
  EXPECT_NEAR(*device / *host, 1, 1e-6);
  const std::vector<float> on_host(pair.host->GradientsOnHost()->begin(), pair.host->GradientsOnHost()->end());
  const absl::StatusOr<std::span<float>> on_device = pair.device->GradientsOnHost();
  ASSERT_THAT(on_device, IsOk());
  EXPECT_THAT(*on_device, ::testing::Pointwise(::testing::FloatNear(1e-6F), on_host));
  for (ParameterStore* store : {pair.host.get(), pair.device.get()}) {
    ASSERT_THAT(store->ApplyUpdate(GetParam().optimizer.AtStep(1)), IsOk());
  }
  EXPECT_LT(Difference(pair), 1e-6);
  AddGradients(pair, 2);
  EXPECT_THAT(
      *pair.device->GradientsOnHost(),
      ::testing::Pointwise(::testing::FloatNear(1e-6F), std::vector<float>(pair.host->GradientsOnHost()->begin(),
                                                                           pair.host->GradientsOnHost()->end())))
      << "those of the step before are no longer on the host";
}

}  // namespace
}  // namespace medley::worker::aten
