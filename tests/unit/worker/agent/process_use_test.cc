// What descendants use, read from a /proc of files.
#include "worker/agent/process_use.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "common/base/testing/temp_dir.h"

namespace medley::worker {
namespace {

class ProcessUseTest : public testing::Test {
 protected:
  ProcessUseTest() : root_(*base::MakeTempDir("process-use")) {}
  ~ProcessUseTest() override { base::RemoveTempDir(root_); }

  // `ticks`: of itself in user mode; it has as many in the kernel, and its ended children together as many as both.
  void Process(int pid, int parent, int ticks, int peak_kib, int file_kib) {
    const std::filesystem::path folder = root_ / "proc" / std::to_string(pid);
    std::filesystem::create_directories(folder / "task" / std::to_string(pid));
    std::ofstream(folder / "task" / std::to_string(pid) / "schedstat") << "5000000000 1500000000 7\n";
    std::ofstream(folder / "stat") << fmt::format(
        "{0} (a) b) S {1} {0} {0} 0 -1 4194304 9 9 9 9 {2} {2} {2} {2} 20 0 1 0", pid, parent, ticks);
    std::ofstream(folder / "status") << fmt::format("Name:\ta) b\nVmHWM:\t {} kB\nRssFile:\t {} kB\nRssShmem:\t 4 kB\n",
                                                    peak_kib, file_kib);
  }

  const std::filesystem::path root_;
};

TEST_F(ProcessUseTest, AddsUpWhatDescends) {
  Process(10, 1, 1000, 999999, 10);  // this process
  Process(11, 10, 100, 3000, 1000);
  Process(12, 11, 50, 2000, 996);
  Process(13, 1, 70, 5000, 0);                                 // another one
  Process(14, 99, 70, 5000, 0);                                // its parent has ended
  std::filesystem::create_directories(root_ / "proc" / "15");  // it is just ending
  std::filesystem::create_directories(root_ / "proc" / "sys");
  const ProcessUse use = UseOfDescendants(10, root_);
  EXPECT_DOUBLE_EQ(use.processor_seconds, 600.0 / static_cast<double>(sysconf(_SC_CLK_TCK)));
  EXPECT_DOUBLE_EQ(use.delay_seconds, 3);
  EXPECT_EQ(use.own_bytes, (3000 - 1004 + 2000 - 1000) * 1024);
  EXPECT_EQ(use.shared_bytes, 1004 * 1024);
  EXPECT_EQ(UseOfDescendants(12, root_).processor_seconds, 0);
}

}  // namespace
}  // namespace medley::worker
