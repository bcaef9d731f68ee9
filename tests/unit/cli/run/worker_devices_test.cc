#include "cli/run/worker_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::cli {
namespace {

using base::IsOkAndHolds;
using base::StatusIs;
using testing::HasSubstr;

class WorkerDevicesTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = base::MakeTempDir("worker-devices").value(); }
  void TearDown() override { base::RemoveTempDir(folder_); }
  // The answer of a program with these lines of shell.
  absl::StatusOr<bool> Ask(const std::string& lines) {
    const auto program = folder_ / "worker";
    EXPECT_THAT(base::WriteFileAtomic(program, "#!/bin/sh\n" + lines + "\n"), base::IsOk());
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return WorkerUsesGpus(clock_, program, folder_);
  }

  base::SystemClock clock_;
  std::filesystem::path folder_;
};

TEST_F(WorkerDevicesTest, AreALineEach) {
  EXPECT_THAT(Ask("echo cpu; echo cuda"), IsOkAndHolds(true));
  EXPECT_THAT(Ask("echo cpu"), IsOkAndHolds(false));
  EXPECT_THAT(Ask("echo cpu; echo cuda-like"), IsOkAndHolds(false));
  EXPECT_THAT(Ask("true"), IsOkAndHolds(false));
}

TEST_F(WorkerDevicesTest, AProgramThatFailsSaysWhy) {
  EXPECT_THAT(Ask("echo libtorch_cuda.so: not found >&2; exit 127"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("exit code 127: libtorch_cuda.so: not found")));
  EXPECT_FALSE(WorkerUsesGpus(clock_, folder_ / "absent", folder_).ok());
}

}  // namespace
}  // namespace medley::cli
