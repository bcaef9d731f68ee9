#include "localcluster/node/proc_stat.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace medley::localcluster {
namespace {

TEST(ProcStatTest, NameMayHoldAnything) {
  const auto stat = ParseProcStat(
      "77 (a) R 1 (b) S 5 70 60 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 1 0 12345 1000 25 1844 1 1", 100, 4096);
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->pid, 77);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 5);
  EXPECT_EQ(stat->group, 70);
  EXPECT_EQ(stat->session, 60);
  EXPECT_EQ(stat->cpu, base::seconds(3));
  EXPECT_EQ(stat->start_ticks, 12345u);
  EXPECT_EQ(stat->resident_bytes, 25 * 4096);
}

TEST(ProcStatTest, RefusesOtherLines) {
  EXPECT_FALSE(ParseProcStat("", 100, 4096).has_value());
  EXPECT_FALSE(ParseProcStat("1 (x) S 1 2 3", 100, 4096).has_value());
  EXPECT_FALSE(ParseProcStat("1 (x) S a b c 0 0 0 0 0 0 0 1 1 0 0 0 0 0 0 1 1 1 1", 100, 4096).has_value());
}

TEST(ProcStatTest, ReadsThisProcess) {
  const auto stat = ReadProcStat(getpid());
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->parent, getppid());
  EXPECT_GT(stat->resident_bytes, 0);
  EXPECT_FALSE(BootId().empty());
  EXPECT_FALSE(StartedWithVariable(getpid(), "MEDLEY_NO_SUCH_VARIABLE=1"));
}

}  // namespace
}  // namespace medley::localcluster
