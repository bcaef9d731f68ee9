#include "localcluster/node/cgroup_layout.h"

#include <gtest/gtest.h>

namespace medley::localcluster {
namespace {

TEST(CgroupLayoutTest, VersionOneWithOwnSubgroup) {
  const CgroupLayout layout = ParseCgroupLayout(
      "30 20 0:26 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
      "31 20 0:27 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
      "32 20 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
      "4:memory:/api/x\n1:cpu,cpuacct:/\n0::/\n");
  EXPECT_EQ(layout.cpu, "/sys/fs/cgroup/cpu");
  EXPECT_EQ(layout.memory, "/sys/fs/cgroup/memory/api/x");
  EXPECT_EQ(layout.unified, "/sys/fs/cgroup/unified");
}

TEST(CgroupLayoutTest, VersionTwoMountedFromASubtree) {
  const CgroupLayout layout = ParseCgroupLayout(
      "40 30 0:26 /docker/abc /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n", "0::/docker/abc/init\n");
  EXPECT_EQ(layout.unified, "/sys/fs/cgroup/init");
  EXPECT_FALSE(layout.cpu.has_value());
}

TEST(CgroupLayoutTest, GarbageGivesNoCgroups) {
  const CgroupLayout layout = ParseCgroupLayout("garbage\n - \n1 2 3", "also:bad\n::\n");
  EXPECT_FALSE(layout.unified || layout.cpu || layout.memory);
}

}  // namespace
}  // namespace medley::localcluster
