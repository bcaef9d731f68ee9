// What a process computes on, without a GPU: worker/device and worker/aten test one.
#include "worker/app/choose_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(ChooseDeviceTest, ModelsOfMedleyAreComputedOnCpus) {
  for (const DeviceChoice choice : {DeviceChoice::kAuto, DeviceChoice::kCpu, DeviceChoice::kCuda}) {
    const auto device = ChooseDevice(Of(choice, ""));
    ASSERT_THAT(device, base::IsOk());
    EXPECT_EQ(*device, nullptr);
  }
}

TEST(ChooseDeviceTest, AGpuThatIsDemandedMustExist) {
  EXPECT_EQ(*ChooseDevice(Of(DeviceChoice::kCpu, "file:///model.pt2")), nullptr);
  const auto gpu = device::OpenGpu();
  const auto chosen = ChooseDevice(Of(DeviceChoice::kAuto, "file:///model.pt2"));
  const auto demanded = ChooseDevice(Of(DeviceChoice::kCuda, "file:///model.pt2"));
  if (gpu.ok()) {
    EXPECT_NE(*chosen, nullptr);
    EXPECT_NE(*demanded, nullptr);
    return;
  }
  EXPECT_EQ(*chosen, nullptr);
  EXPECT_EQ(demanded.status().code(), gpu.status().code());
  EXPECT_THAT(base::Message(demanded.status()), testing::StartsWith("MEDLEY_DEVICE=cuda: "));
}

}  // namespace
}  // namespace medley::worker
