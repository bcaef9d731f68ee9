// Kernels that a device records and does again. In the build with CUDA the device is a GPU.
#include "worker/aten/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "common/base/testing/status_matchers.h"
#include "worker/aten/parameter_store.h"
#include "worker/aten/testing/tested_device.h"
#include "worker/device/testing/needs_gpu.h"
#include "worker/device/unrecorded_device.h"

namespace medley::worker::aten {
namespace {

using base::IsOk;
using Numbers = std::vector<float>;

class RecorderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device::BuiltForGpus()) MEDLEY_NEEDS_GPU();
    device_ = *OpenTestedDevice();
    place_.emplace(device_);
  }

  at::Tensor Placed(const Numbers& values) const {
    return *place_->ToPlace(Over(values, {static_cast<int64_t>(values.size())}));
  }
  Numbers Read(const at::Tensor& tensor) const {
    Numbers values(static_cast<size_t>(tensor.numel()));
    EXPECT_THAT(place_->CopyOut(tensor, values), IsOk());
    return values;
  }

  std::shared_ptr<device::CountingDevice> device_;
  std::optional<Place> place_;
};

TEST_F(RecorderTest, WorkIsRecordedAfterItWasDoneTwice) {
  Recorder recorder(*place_, "work");
  const at::Tensor sum = Placed({0, 0}), more = Placed({1, 2});
  const auto work = [&] {
    at::Tensor to = sum;
    to.add_(more.mul(2));
    return absl::OkStatus();
  };
  for (int step = 1; step <= 5; ++step) {
    ASSERT_THAT(recorder.Do({7}, work), IsOk());
    const auto done = static_cast<float>(step);
    EXPECT_EQ(Read(sum), (Numbers{2 * done, 4 * done}));
    EXPECT_EQ(recorder.counts().recorded, step <= Recorder::kWarmUp ? 0 : 1);
    EXPECT_EQ(recorder.counts().replayed, std::max(0, step - Recorder::kWarmUp));
  }
  EXPECT_EQ(recorder.counts().one_by_one, Recorder::kWarmUp);
  EXPECT_EQ(recorder.counts().reason, "");
}

// A recording reads what is at its addresses when it is done again; what its kernels were given stays.
TEST_F(RecorderTest, ARecordingReadsTheMemoryOfItsDayAndKeepsNumbersOfTheHost) {
  Recorder recorder(*place_, "work");
  const auto memory = recorder.NewMemory();
  at::Tensor x = Placed({1, 2, 3}), factor = Placed({2}), y = Placed({0, 0, 0}), z = Placed({0, 0, 0});
  float rate = 0.5F;
  const auto recording = recorder.Record({1}, *memory, [&] {
    at::mul_out(y, x, factor);
    at::mul_out(z, x, at::scalar_tensor(rate));
    return absl::OkStatus();
  });
  ASSERT_THAT(recording, IsOk());
  EXPECT_EQ(Read(y), (Numbers{0, 0, 0})) << "nothing is done while it is recorded";
  ASSERT_THAT(recorder.Replay(**recording), IsOk());
  EXPECT_EQ(Read(y), (Numbers{2, 4, 6}));
  rate = 8;
  factor.fill_(10);
  ASSERT_THAT(place_->Renew(Over(Numbers{4, 5, 6}, {3}), x), IsOk());
  ASSERT_THAT(recorder.Replay(**recording), IsOk());
  EXPECT_EQ(Read(y), (Numbers{40, 50, 60}));
  EXPECT_EQ(Read(z), (Numbers{2, 2.5, 3})) << "so factors that change are in the device's memory";
}

TEST_F(RecorderTest, WorkAtAnotherAddressIsOtherWork) {
  Recorder recorder(*place_, "work");
  std::vector<at::Tensor> all;  // none is freed, so that all have addresses of their own
  for (int step = 0; step < 12; ++step) {
    if (step % 4 == 0) all.push_back(Placed({1, 1}));
    const auto work = [&] {
      all.back().add_(1);
      return absl::OkStatus();
    };
    ASSERT_THAT(recorder.Do({AddressOf(all.back())}, work), IsOk());
  }
  for (const at::Tensor& each : all) EXPECT_EQ(Read(each), (Numbers{5, 5}));
  EXPECT_EQ(recorder.counts().recorded, 3);
  EXPECT_EQ(recorder.counts().replayed, 6);
}

TEST_F(RecorderTest, WhatCannotBeRecordedIsDoneAndTheReasonIsKept) {
  Recorder recorder(*place_, "work");
  const at::Tensor sum = Placed({0, 0});
  double found = 0;
  const auto work = [&] {
    at::Tensor to = sum;
    to.add_(1);
    found = to.sum().item<double>();
    return absl::OkStatus();
  };
  for (int step = 1; step <= 6; ++step) {
    ASSERT_THAT(recorder.Do({1}, work), IsOk());
    EXPECT_EQ(found, 2 * step);
  }
  EXPECT_EQ(Read(sum), (Numbers{6, 6})) << "what was done before the error while it recorded counts once";
  EXPECT_EQ(recorder.counts().recorded, 0);
  EXPECT_EQ(recorder.counts().one_by_one, 6);
  EXPECT_NE(recorder.counts().reason, "");
  // The device can record other work after that.
  const auto other = [&] {
    at::Tensor to = sum;
    to.add_(1);
    return absl::OkStatus();
  };
  for (int step = 1; step <= 4; ++step) ASSERT_THAT(recorder.Do({2}, other), IsOk());
  EXPECT_EQ(Read(sum), (Numbers{10, 10}));
  EXPECT_EQ(recorder.counts().recorded, 1);
}

TEST_F(RecorderTest, WorkWhoseSizesAlwaysChangeIsNotRemembered) {
  Recorder recorder(*place_, "work");
  const at::Tensor sum = Placed({0});
  const auto work = [&] {
    at::Tensor to = sum;
    to.add_(1);
    return absl::OkStatus();
  };
  for (uint64_t key = 0; key < 200; ++key) ASSERT_THAT(recorder.Do({key}, work), IsOk());
  EXPECT_EQ(Read(sum), (Numbers{200}));
  EXPECT_THAT(recorder.counts().reason, ::testing::HasSubstr("sizes change"));
}

TEST_F(RecorderTest, ADeviceThatMayNotRecordDoesAllWork) {
  const Place place(std::make_shared<device::UnrecordedDevice>(device_));
  Recorder recorder(place, "work");
  const at::Tensor sum = Placed({0});
  const auto work = [&] {
    at::Tensor to = sum;
    to.add_(1);
    return absl::OkStatus();
  };
  for (int step = 1; step <= 5; ++step) ASSERT_THAT(recorder.Do({1}, work), IsOk());
  EXPECT_EQ(Read(sum), (Numbers{5}));
  EXPECT_EQ(recorder.counts().reason, "MEDLEY_GRAPHS is 0");
}

std::vector<ParameterSpec> SomeSpecs() {
  std::vector<ParameterSpec> specs(3);
  for (ParameterSpec& spec : specs) {
    spec.rows = 7;
    spec.columns = 30;
    spec.initializer = Initializer::kXavierUniform;
  }
  specs[0].name = "mean";
  specs[0].role = ParameterRole::kStatistic;
  specs[1].name = "weight";
  specs[2].name = "frozen";
  specs[2].role = ParameterRole::kFrozen;
  return specs;
}

// The bits of all values after each step, with learning rates that change, and a step that is undone.
std::vector<Numbers> ValuesOfSteps(const Optimizer& optimizer, const Place& place, float final_rate,
                                   RecordingCounts& counts) {
  const std::vector<ParameterSpec> specs = SomeSpecs();
  const auto store = MakeParameterStore(specs, optimizer, 5, /*kept_updates=*/1, place);
  std::vector<Numbers> found;
  const auto step = [&](int64_t number) -> absl::Status {
    std::mt19937 random(static_cast<unsigned>(number));
    std::normal_distribution<float> normal(0, 0.1F);
    store->BeginGradients(number);
    for (size_t p = 0; p < specs.size(); ++p) {
      Numbers gradient(static_cast<size_t>(specs[p].Size()));
      for (float& x : gradient) x = normal(random);
      MEDLEY_ASSIGN_OR_RETURN(const at::Tensor placed,
                              place.ToPlace(Over(gradient, {specs[p].rows, specs[p].columns})));
      store->AddGradient(p, placed, 1);
    }
    Optimizer scheduled = optimizer.AtStep(number);
    scheduled.learning_rate *= number > 20 ? final_rate : 1 / (1 + 0.1F * static_cast<float>(number));
    MEDLEY_RETURN_IF_ERROR(store->ApplyUpdate(scheduled));
    const size_t state = StateFloats(optimizer.kind);
    for (size_t p = 0; p < specs.size(); ++p) {
      Numbers& weights = found.emplace_back(static_cast<size_t>(specs[p].Size()));
      MEDLEY_RETURN_IF_ERROR(store->Read(p, DensePart::kWeights, 0, weights));
      Numbers& states = found.emplace_back(static_cast<size_t>(specs[p].Size()) * state);
      MEDLEY_RETURN_IF_ERROR(store->Read(p, DensePart::kState, 0, states));
    }
    return absl::OkStatus();
  };
  for (int64_t number = 1; number <= 12; ++number) EXPECT_THAT(step(number), IsOk());
  EXPECT_THAT(store->UndoTo(11), IsOk());
  store->ForgetGradients(12);
  for (int64_t number = 12; number <= 24; ++number) EXPECT_THAT(step(number), IsOk());
  counts = store->Recordings();
  return found;
}

std::vector<std::pair<std::string, Optimizer>> AllRules() {
  std::vector<std::pair<std::string, Optimizer>> rules;
  for (const char* name : {"sgd", "adagrad", "adam", "adamw", "rmsprop", "ftrl"}) {
    rules.emplace_back(name, *MakeOptimizer(name, 0.01));
  }
  Optimizer momentum = *MakeOptimizer("sgd", 0.01);
  momentum.kind = OptimizerKind::kMomentum;
  momentum.momentum = 0.9F;
  momentum.weight_decay = 0.01F;
  momentum.nesterov = true;
  rules.emplace_back("nesterov", momentum);
  Optimizer rmsprop = *MakeOptimizer("rmsprop", 0.01);
  rmsprop.kind = OptimizerKind::kRmspropMomentum;
  rmsprop.momentum = 0.5F;
  rules.emplace_back("rmspropmomentum", rmsprop);
  return rules;
}

TEST_F(RecorderTest, RecordedUpdatesHaveTheBitsOfOthersAndFollowTheLearningRate) {
  for (const auto& [name, optimizer] : AllRules()) {
    RecordingCounts recorded, plain, other;
    const std::vector<Numbers> is = ValuesOfSteps(optimizer, *place_, 1, recorded);
    const Place unrecorded(std::make_shared<device::UnrecordedDevice>(device_));
    EXPECT_EQ(is, ValuesOfSteps(optimizer, unrecorded, 1, plain)) << name;
    EXPECT_EQ(recorded.recorded, 2) << name << ": from each of two versions to the other";
    EXPECT_EQ(recorded.replayed, 25 - 2 * Recorder::kWarmUp) << name;
    EXPECT_EQ(plain.replayed, 0) << name;
    // The last steps differ in nothing but the learning rate.
    EXPECT_NE(is.back() == ValuesOfSteps(optimizer, *place_, 0.5F, other).back() &&
                  is[is.size() - 4] == ValuesOfSteps(optimizer, *place_, 0.5F, other)[is.size() - 4],
              true)
        << name;
  }
}

}  // namespace
}  // namespace medley::worker::aten
