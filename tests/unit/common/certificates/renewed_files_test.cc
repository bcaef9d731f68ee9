#include "common/certificates/renewed_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"

namespace medley::certificates {
namespace {

using base::IsOk;
using base::StatusIs;

constexpr base::nanoseconds kLifetime = std::chrono::hours(24);

// Numbers the certificates.
class Maker {
 public:
  RenewedFiles::Make Callback() {
    return [this](base::WallTime, base::nanoseconds) -> absl::StatusOr<KeyPair> {
      base::MutexLock lock(mutex_);
      ++calls_;
      if (fails_) return base::Internal("no entropy");
      return KeyPair{"certificate " + std::to_string(calls_) + "\n", "key\n"};
    };
  }
  void Fail(bool fails) {
    base::MutexLock lock(mutex_);
    fails_ = fails;
  }

 private:
  base::Mutex mutex_;
  int calls_ = 0;
  bool fails_ = false;
};

TEST(RenewedFilesTest, ReplacesTheFileWhenTwoThirdsOfTheLifetimeHavePassed) {
  base::FakeClock clock;
  Maker maker;
  const auto files = RenewedFiles::Start("ca", maker.Callback(), kLifetime, clock).value();
  EXPECT_EQ(base::ReadFile(files->authority()).value(), "ca");
  EXPECT_EQ(base::ReadFile(files->identity()).value(), "certificate 1\nkey\n");
  for (int renewal = 2; renewal < 5; ++renewal) {
    ASSERT_TRUE(clock.WaitForSleepers(1));
    clock.Advance(kLifetime * 2 / 3 - base::seconds(1));
    EXPECT_EQ(base::ReadFile(files->identity()).value(), "certificate " + std::to_string(renewal - 1) + "\nkey\n");
    clock.Advance(base::seconds(1));
    ASSERT_TRUE(clock.WaitForSleepers(1));
    EXPECT_EQ(base::ReadFile(files->identity()).value(), "certificate " + std::to_string(renewal) + "\nkey\n");
  }
}

TEST(RenewedFilesTest, TriesAgainSoonAfterAFailure) {
  base::FakeClock clock;
  Maker maker;
  const auto files = RenewedFiles::Start("ca", maker.Callback(), kLifetime, clock).value();
  maker.Fail(true);
  ASSERT_TRUE(clock.WaitForSleepers(1));
  clock.Advance(kLifetime * 2 / 3);
  ASSERT_TRUE(clock.WaitForSleepers(1));
  EXPECT_EQ(base::ReadFile(files->identity()).value(), "certificate 1\nkey\n");
  maker.Fail(false);
  clock.Advance(kLifetime / 30);
  ASSERT_TRUE(clock.WaitForSleepers(1));
  EXPECT_EQ(base::ReadFile(files->identity()).value(), "certificate 3\nkey\n");
}

TEST(RenewedFilesTest, OnlyTheOwnerMayReadThemAndTheyAreRemoved) {
  base::FakeClock clock;
  Maker maker;
  auto files = RenewedFiles::Start("ca", maker.Callback(), kLifetime, clock).value();
  const std::filesystem::path folder = std::filesystem::path(files->identity()).parent_path();
  struct stat found {};
  ASSERT_EQ(stat(folder.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700U);
  files.reset();
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(RenewedFilesTest, TheFirstCertificateMustSucceed) {
  base::FakeClock clock;
  Maker maker;
  maker.Fail(true);
  EXPECT_THAT(RenewedFiles::Start("ca", maker.Callback(), kLifetime, clock), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(RenewedFiles::Start("ca", maker.Callback(), base::seconds(1), clock),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace medley::certificates
