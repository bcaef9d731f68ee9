#include "localcluster/node/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::localcluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(MachineTest, HasTheCpusOnWhichThisProcessMayRun) {
  const Machine machine = ThisMachine();
  EXPECT_EQ(machine.cpus, static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_GT(machine.memory_bytes, int64_t{64} << 20);
}

TEST(MachineTest, CountsTheDeviceFilesOfGpus) {
  const auto devices = base::MakeTempDir("devices");
  ASSERT_THAT(devices.status(), base::IsOk());
  EXPECT_THAT(ThisMachine(*devices, nullptr).gpus, IsEmpty());
  for (const char* name : {"nvidia0", "nvidia12", "nvidia", "nvidiactl", "nvidia-uvm", "null"}) {
    std::ofstream(*devices / name) << "";
  }
  EXPECT_THAT(ThisMachine(*devices, nullptr).gpus, ElementsAre("0", "1"));
  EXPECT_THAT(ThisMachine(*devices, "1").gpus, ElementsAre("1"));
  EXPECT_THAT(ThisMachine(*devices / "absent", nullptr).gpus, IsEmpty());
  base::RemoveTempDir(*devices);
}

TEST(MachineTest, SaysWhatItHas) {
  EXPECT_EQ((Machine{2, int64_t{5} << 29, {}}).ToString(), "2 CPUs, 2.5 GiB of memory and no GPU");
  EXPECT_EQ((Machine{1, int64_t{1} << 30, {"0"}}).ToString(), "1 CPU, 1.0 GiB of memory and 1 GPU");
}

}  // namespace
}  // namespace medley::localcluster
