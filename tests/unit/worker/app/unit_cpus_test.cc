#include "worker/app/unit_cpus.h"
#include "common/base/testing/temp_dir.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace medley::worker {
namespace {

TEST(UnitCpusTest, ThreadsFollowTheCpuLimit) {
  EXPECT_EQ(ThreadsFor({.quota = 4, .allowed = 64}), 4);
  EXPECT_EQ(ThreadsFor({.quota = 3.9, .allowed = 64}), 3);
  EXPECT_EQ(ThreadsFor({.quota = 0.5, .allowed = 64}), 1);
  EXPECT_EQ(ThreadsFor({.quota = 8, .allowed = 2}), 2) << "the machine is smaller than the limit";
  EXPECT_EQ(ThreadsFor({.allowed = 64}), 1) << "without a limit the machine may be shared";
}

TEST(UnitCpusTest, TheVariableCountsWithinTheLimits) {
  EXPECT_EQ(ThreadsFor({.wanted = 4, .allowed = 64}), 4);
  EXPECT_EQ(ThreadsFor({.wanted = 1, .quota = 4, .allowed = 64}), 1);
  EXPECT_EQ(ThreadsFor({.wanted = 8, .quota = 2, .allowed = 64}), 2);
  EXPECT_EQ(ThreadsFor({.wanted = 8, .allowed = 2}), 2);
}

TEST(UnitCpusTest, ReadsCpuMax) {
  EXPECT_EQ(ParseCpuMax("400000 100000\n"), (CpuQuota{4, 0.1}));
  EXPECT_EQ(ParseCpuMax("5000 10000\n"), (CpuQuota{0.5, 0.01}));
  for (const char* none : {"max 100000\n", "-1 100000", "", "7", "x y"}) EXPECT_FALSE(ParseCpuMax(none)) << none;
}

class CgroupTest : public testing::Test {
 protected:
  CgroupTest() { base::RemoveTempDir(root_); }
  ~CgroupTest() override { base::RemoveTempDir(root_); }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  const std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) / ("cgroup-" + std::to_string(::getpid()));
};

TEST_F(CgroupTest, TheSmallestLimitAboveTheProcessCounts) {
  Write("proc/self/cgroup", "0::/kubepods/pod1/worker\n");
  EXPECT_FALSE(CgroupQuota(root_));
  Write("sys/fs/cgroup/kubepods/pod1/worker/cpu.max", "max 100000\n");
  Write("sys/fs/cgroup/kubepods/cpu.max", "800000 100000\n");
  EXPECT_EQ(CgroupQuota(root_), (CpuQuota{8, 0.1}));
  Write("sys/fs/cgroup/kubepods/pod1/cpu.max", "200000 100000\n");
  EXPECT_EQ(CgroupQuota(root_), (CpuQuota{2, 0.1}));
}

TEST_F(CgroupTest, AContainerSeesItsOwnLimitAtTheMount) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(CgroupQuota(root_), (CpuQuota{3, 0.1}));
}

TEST_F(CgroupTest, ReadsVersion1) {
  Write("proc/self/cgroup", "3:memory:/a\n2:cpu,cpuacct:/a\n");
  Write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "150000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupQuota(root_), (CpuQuota{1.5, 0.1}));
  Write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(CgroupQuota(root_));
}

}  // namespace
}  // namespace medley::worker
