// Blocks on the test device, whose memory the host cannot touch: what a step copies, what happens when an allocation
// fails, when the device fails, and when host code touches its memory. Not for the build with CUDA.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/aten/device_checks.h"
#include "tests/unit/worker/aten/exported_sample.h"
#include "worker/aten/aten_block.h"
#include "worker/aten/place.h"
#include "worker/aten/testing/tested_device.h"
#include "worker/device/testing/guarded_device.h"

namespace medley::worker::aten {
namespace {

using base::IsOk;
using base::StatusIs;
using device::GuardedMemory;
using ::testing::HasSubstr;

Optimizer Adam() { return *MakeOptimizer("adam", 0.01); }

// A model as one block on the test device, and its steps.
class Trained {
 public:
  explicit Trained(const std::string& name)
      : sample_(SampleOf(name, Expected(name == "dropout" ? "conv" : name))), graph_(GraphOf(name, sample_)) {}

  absl::Status Create(int kept = 1) {
    MEDLEY_ASSIGN_OR_RETURN(
        block_,
        AtenBlock::Create(graph_, {0, static_cast<int>(graph_.operations.size())},
                          {.optimizer = Adam(), .seed = 11, .kept_updates = kept, .device = *OpenTestedDevice()}));
    return absl::OkStatus();
  }

  absl::Status Step(int64_t step, int micros = 1) {
    block_->BeginStep(
        {.step = step, .version = step - 1, .micro_batches = micros, .global_samples = sample_.batch.samples});
    for (int m = 0; m < micros; ++m) {
      const int each = sample_.batch.samples / micros;
      const worker::Pass pass{.micro = m, .first_sample = m * each};
      MEDLEY_RETURN_IF_ERROR(block_->Forward(pass, sample_.batch.View(m * each, each), {}).status());
      MEDLEY_RETURN_IF_ERROR(block_->Backward(pass, {}).status());
    }
    return block_->ApplyUpdate(Adam().AtStep(step));
  }

  AtenBlock& block() { return *block_; }
  const Sample& sample() const { return sample_; }

 private:
  const Sample sample_;
  const worker::Graph graph_;
  std::unique_ptr<AtenBlock> block_;
};

GuardedMemory& Memory() { return GuardedMemory::OfProcess(); }

// Whoever copies: blocks, kernels and conversions between types of devices all count.
TEST(GuardedDeviceTest, AStepCopiesItsInputsAndALoss) {
  for (const std::string name : {"mlp", "conv", "dropout", "tied", "transformer", "two-inputs", "numbers"}) {
    Trained trained(name);
    ASSERT_THAT(trained.Create(), IsOk());
    const Sample& sample = trained.sample();
    const auto samples = static_cast<int64_t>(sample.batch.samples);
    // Whole numbers are indices of 8 bytes for LibTorch.
    const int64_t inputs = static_cast<int64_t>(sample.batch.numerics.size() * 4 + sample.batch.ids.size() * 8);
    const int64_t labels = 4 * samples;
    for (int64_t step = 1; step <= 4; ++step) {
      const device::CopyCounts before = Memory().counts();
      ASSERT_THAT(trained.Step(step, step % 2 == 0 ? 1 : 2), IsOk()) << name;
      EXPECT_FALSE(std::isnan(trained.block().LossSum(0)));
      const device::CopyCounts copied = Memory().counts() - before;
      EXPECT_EQ(copied.bytes_in, inputs + labels) << name;
      EXPECT_EQ(copied.bytes_out, static_cast<int64_t>(sizeof(double))) << name;
    }
  }
}

TEST(GuardedDeviceTest, MemoryDoesNotGrow) {
  Trained trained("transformer");
  ASSERT_THAT(trained.Create(), IsOk());
  ExpectNoGrowth([&](int64_t step) { return trained.Step(step); });
}

TEST(GuardedDeviceTest, AnAllocationThatFailsIsASentenceWhereverItIs) {
  Trained trained("conv");
  ExpectFailedAllocationsAreSentences([&]() -> absl::Status {
    MEDLEY_RETURN_IF_ERROR(trained.Create());
    MEDLEY_RETURN_IF_ERROR(trained.Step(1));
    MEDLEY_RETURN_IF_ERROR(trained.block().KeepAgreed());
    MEDLEY_RETURN_IF_ERROR(trained.block().SquaredNorm().status());
    trained.block().Gradients();
    return trained.Step(2);
  });
}

TEST(GuardedDeviceTest, ADeviceThatFailsIsAnErrorOfTheStep) {
  Trained trained("mlp");
  ASSERT_THAT(trained.Create(), IsOk());
  ASSERT_THAT(trained.Step(1), IsOk());
  Memory().SetBroken(true);
  const absl::Status step = trained.Step(2);
  const absl::Status update = trained.block().ApplyUpdate(Adam());
  const absl::Status device = (*OpenTestedDevice())->Check();
  Memory().SetBroken(false);
  for (const absl::Status& status : {step, update, device}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("illegal memory access")));
  }
  EXPECT_EQ(trained.block().AppliedStep(), 1);
}

// Gradients that could not reach the host are never applied.
TEST(GuardedDeviceTest, AFailedCopyIsNotAnUpdate) {
  Trained trained("mlp");
  ASSERT_THAT(trained.Create(), IsOk());
  ASSERT_THAT(trained.Step(1), IsOk());
  Memory().SetBroken(true);
  EXPECT_TRUE(trained.block().Gradients().empty());
  Memory().SetBroken(false);
  EXPECT_THAT(trained.block().ApplyUpdate(Adam()), StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(trained.block().AppliedStep(), 1);
}

TEST(GuardedDeviceDeathTest, HostCodeThatTouchesItsMemoryEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Place place(*OpenTestedDevice());
  const auto touch = [&](bool write) {
    const at::Tensor tensor = at::zeros({8}, place.Floats());
    volatile float* const values = static_cast<float*>(tensor.data_ptr());
    if (write) values[3] = 1;
    std::exit(values[3] > 0 ? 1 : 0);
  };
  EXPECT_DEATH(touch(true), "host code touched byte 12 of a live block of 32 bytes of the device");
  EXPECT_DEATH(touch(false), "host code touched byte 12 of a live block of 32 bytes of the device");
  const auto touch_freed = [&] {
    const volatile float* values = nullptr;
    {
      const at::Tensor tensor = at::zeros({8}, place.Floats());
      values = static_cast<const float*>(tensor.data_ptr());
    }
    std::exit(values[0] > 0 ? 1 : 0);
  };
  EXPECT_DEATH(touch_freed(), "host code touched byte 0 of a freed block of 32 bytes of the device");
}

// A GPU would read whatever its memory held before.
TEST(GuardedDeviceTest, NewMemoryHoldsNoNumbers) {
  const Place place(*OpenTestedDevice());
  std::vector<float> values(5);
  ASSERT_THAT(place.CopyOut(at::empty({5}, place.Floats()), values), IsOk());
  for (const float value : values) EXPECT_TRUE(std::isnan(value));
}

TEST(GuardedDeviceTest, AKernelDoesNotTakeTensorsOfTheHost) {
  const Place place(*OpenTestedDevice());
  const at::Tensor tensor = at::ones({4}, place.Floats());
  EXPECT_THROW(tensor.add(at::ones({4})), c10::Error);
  EXPECT_EQ(tensor.add(1).sum().item<float>(), 8);
}

}  // namespace
}  // namespace medley::worker::aten
