#include "common/base/memory_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "common/base/file.h"
#include "common/base/testing/temp_dir.h"

namespace medley::base {
namespace {

class MemoryLimitTest : public testing::Test {
 protected:
  void SetUp() override { root_ = *MakeTempDir("medley-memory-limit"); }
  void TearDown() override { RemoveTempDir(root_); }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  const int64_t machine_ = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  std::filesystem::path root_;
};

TEST_F(MemoryLimitTest, IsTheSmallestOfTheGroupsAbove) {
  EXPECT_EQ(MemoryLimit(root_), machine_);
  Write("proc/self/cgroup", "0::/kubepods/pod1/c1\n");
  Write("sys/fs/cgroup/kubepods/pod1/c1/memory.max", "max\n");
  EXPECT_EQ(MemoryLimit(root_), machine_);
  Write("sys/fs/cgroup/kubepods/pod1/memory.max", "1048576\n");
  Write("sys/fs/cgroup/kubepods/memory.max", "4194304\n");
  EXPECT_EQ(MemoryLimit(root_), 1048576);
}

TEST_F(MemoryLimitTest, KnowsTheGroupsOfVersion1) {
  Write("proc/self/cgroup", "7:cpu,cpuacct:/docker/x\n5:memory:/docker/x\n");
  Write("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "2097152\n");
  EXPECT_EQ(MemoryLimit(root_), 2097152);
}

TEST_F(MemoryLimitTest, AContainerSeesItsGroupAsTheRoot) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "3145728\n");
  EXPECT_EQ(MemoryLimit(root_), 3145728);
}

TEST_F(MemoryLimitTest, WithoutAGroupTheEnvironmentMaySayIt) {
  setenv("MEDLEY_MEMORY_LIMIT", "4194304", 1);
  EXPECT_EQ(MemoryLimit(root_), 4194304);
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "3145728\n");
  EXPECT_EQ(MemoryLimit(root_), 3145728);  // the group holds in any case
  for (const char* bad : {"", "0", "-5", "4Mi"}) {
    setenv("MEDLEY_MEMORY_LIMIT", bad, 1);
    EXPECT_EQ(MemoryLimit(root_), 3145728) << bad;
  }
  unsetenv("MEDLEY_MEMORY_LIMIT");
}

TEST_F(MemoryLimitTest, MemoryInUseCountsWhatTheProcessHasTouched) {
  EXPECT_EQ(MemoryInUse(root_), 0);
  Write("proc/self/statm", "1000 300 100 1 0 5 0\n");
  EXPECT_EQ(MemoryInUse(root_), 200 * sysconf(_SC_PAGESIZE));
}

}  // namespace
}  // namespace medley::base
