// What a process computes on, without a GPU: worker/device and worker/aten test one.
#include "worker/app/choose_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"

namespace medley::worker {
namespace {

Environment Of(DeviceChoice choice, const std::string& archive) {
  Environment env;
  env.device = choice;
  env.spec.model.exported_uri = archive;
  return env;
}

TEST(ChooseDeviceTest, TheProgramForGpusIsNeededWhereOneMayBeUsed) {
  std::optional<std::string> visible;
  const auto get = [&](const char* name) {
    return std::string(name) == "CUDA_VISIBLE_DEVICES" ? visible : std::nullopt;
  };
  for (const char* archive : {"", "file:///model.pt2"}) {
    EXPECT_FALSE(MayComputeOnGpu(Of(DeviceChoice::kCpu, archive), get));
    EXPECT_TRUE(MayComputeOnGpu(Of(DeviceChoice::kCuda, archive), get));
    EXPECT_EQ(MayComputeOnGpu(Of(DeviceChoice::kAuto, archive), get), device::BuiltForGpus());
  }
  visible = "";
  EXPECT_FALSE(MayComputeOnGpu(Of(DeviceChoice::kAuto, ""), get)) << "a unit of `medley run` without a GPU";
}

class ChooseDeviceForTest : public testing::TestWithParam<const char*> {};

TEST_P(ChooseDeviceForTest, AGpuThatIsDemandedMustExist) {
  EXPECT_EQ(*ChooseDevice(Of(DeviceChoice::kCpu, GetParam())), nullptr);
  const auto gpu = device::OpenGpu();
  const auto chosen = ChooseDevice(Of(DeviceChoice::kAuto, GetParam()));
  const auto demanded = ChooseDevice(Of(DeviceChoice::kCuda, GetParam()));
  if (gpu.ok()) {
    EXPECT_NE(*chosen, nullptr);
    EXPECT_NE(*demanded, nullptr);
    return;
  }
  EXPECT_EQ(*chosen, nullptr);
  EXPECT_EQ(demanded.status().code(), gpu.status().code());
  EXPECT_THAT(base::Message(demanded.status()), testing::StartsWith("MEDLEY_DEVICE=cuda: "));
}

// A click model, and one from PyTorch.
INSTANTIATE_TEST_SUITE_P(Models, ChooseDeviceForTest, testing::Values("", "file:///model.pt2"));

}  // namespace
}  // namespace medley::worker
