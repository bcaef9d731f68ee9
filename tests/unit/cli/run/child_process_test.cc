#include "cli/run/child_process.h"

#include <gtest/gtest.h>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::cli {
namespace {

class ChildProcessTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("medley-child"); }
  void TearDown() override { base::RemoveTempDir(folder_); }

  // Runs a shell script for at most 30 s and returns how it ended.
  std::string Run(const std::string& script) {
    std::filesystem::remove(log());
    const auto child = ChildProcess::Start({.program = "/bin/sh", .arguments = {"-c", script}, .log = log()});
    EXPECT_THAT(child.status(), base::IsOk());
    const base::SteadyTime deadline = clock_.Steady() + base::seconds(30);
    while (clock_.Steady() < deadline) {
      if (const auto ended = (*child)->Ended()) {
        output_ = base::ReadFile(log()).value_or("");  // read before the child is destroyed
        return *ended;
      }
      clock_.SleepFor(base::milliseconds(1), std::stop_token());
    }
    return "";
  }

  std::filesystem::path log() const { return folder_ / "log"; }
  base::SystemClock clock_;
  std::filesystem::path folder_;
  std::string output_;
};

TEST_F(ChildProcessTest, AllOutputIsInTheLogOnceItHasEnded) {
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Run("seq 1 9000; echo last >&2; exit 3"), "exit code 3");
    ASSERT_TRUE(output_.ends_with("9000\nlast\n")) << output_.size();
  }
}

TEST_F(ChildProcessTest, AWriterThatOutlivesItIsNotWaitedFor) {
  const base::SteadyTime start = clock_.Steady();
  EXPECT_EQ(Run("(exec sleep 20) & echo said; kill -9 $$"), "signal 9");
  EXPECT_EQ(output_, "said\n");
  EXPECT_LT(clock_.Steady() - start, base::seconds(15));
}

}  // namespace
}  // namespace medley::cli
