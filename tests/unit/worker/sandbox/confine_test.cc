// What a confined process can still do. Each case runs in a child, because rights do not come back.
#include "worker/sandbox/confine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/landlock.h>
#include <netinet/in.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>

#include "common/base/file.h"
#include "common/base/testing/temp_dir.h"

namespace medley::worker {
namespace {

// 0 or the error of a system call.
int ErrorOf(long result) { return result < 0 ? errno : 0; }

int ErrorOfOpen(const std::filesystem::path& path, int flags) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  const int error = ErrorOf(file);
  if (file >= 0) ::close(file);
  return error;
}

class ConfineTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *base::MakeTempDir("medley-confine");
    std::filesystem::create_directory(folder_ / "job");
    std::filesystem::create_directory(folder_ / "other");
    std::ofstream(folder_ / "other/file") << "before";
  }
  void TearDown() override { base::RemoveTempDir(folder_); }

  static bool HasLandlock() {
    return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
  }
  static bool HasSanitizers() { return std::getenv("MEDLEY_SANITIZE") != nullptr; }
  // 0: Confine says that something is missing.
  int SaysSo() {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto confined = Confine({});
      ::_exit(confined.ok() && !confined->empty() ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }

  // Runs `body` in a confined child and returns what it returns; 200: it could not be confined.
  int Confined(const std::function<int()>& body, std::vector<std::filesystem::path> programs = {},
               std::vector<std::filesystem::path> files = {}) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto confined =
          Confine({.writable = {folder_ / "job"}, .files = std::move(files), .programs = std::move(programs)});
      ::_exit(confined.ok() ? body() : 200);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 201;
  }

  std::filesystem::path folder_;
};

TEST_F(ConfineTest, FilesAreWrittenOnlyInTheFoldersOfTheJob) {
  if (HasSanitizers() || !HasLandlock()) {
    EXPECT_EQ(SaysSo(), 0);
    return;
  }
  EXPECT_EQ(Confined([&] { return ErrorOfOpen(folder_ / "job/new", O_WRONLY | O_CREAT); }), 0);
  EXPECT_EQ(Confined([&] { return ErrorOf(::rename((folder_ / "job/new").c_str(), (folder_ / "job/b").c_str())); }), 0);
  EXPECT_EQ(Confined([&] { return ErrorOf(::unlink((folder_ / "job/b").c_str())); }), 0);
  EXPECT_EQ(Confined([&] { return ErrorOfOpen(folder_ / "other/new", O_WRONLY | O_CREAT); }), EACCES);
  for (const int flags : {O_WRONLY, O_RDWR, O_WRONLY | O_APPEND, O_WRONLY | O_TRUNC}) {
    EXPECT_EQ(Confined([&] { return ErrorOfOpen(folder_ / "other/file", flags); }), EACCES) << flags;
  }
  EXPECT_EQ(Confined([&] { return ErrorOf(::truncate((folder_ / "other/file").c_str(), 0)); }), EACCES);
  EXPECT_EQ(Confined([&] { return ErrorOf(::unlink((folder_ / "other/file").c_str())); }), EACCES);
  EXPECT_EQ(Confined([&] { return ErrorOf(::mkdir((folder_ / "other/folder").c_str(), 0700)); }), EACCES);
  EXPECT_EQ(Confined([&] { return ErrorOf(::symlink("/etc/passwd", (folder_ / "other/link").c_str())); }), EACCES);
  EXPECT_NE(Confined([&] { return ErrorOf(::rename((folder_ / "other/file").c_str(), (folder_ / "job/f").c_str())); }),
            0);
  EXPECT_EQ(Confined([&] { return ErrorOfOpen(folder_ / "other/file", O_RDONLY); }), 0) << "reading goes on";
  EXPECT_EQ(Confined([&] { return ErrorOfOpen("/dev/null", O_WRONLY); }), 0);
  std::string text;
  std::ifstream(folder_ / "other/file") >> text;
  EXPECT_EQ(text, "before");
}

// As the termination log of a coordinator, which is not below its folders.
TEST_F(ConfineTest, AGivenFileIsWrittenAndItsFolderIsNot) {
  if (HasSanitizers() || !HasLandlock()) {
    EXPECT_EQ(SaysSo(), 0);
    return;
  }
  const std::vector<std::filesystem::path> given = {folder_ / "other/file", folder_ / "other/missing"};
  EXPECT_EQ(Confined([&] { return ErrorOfOpen(folder_ / "other/file", O_WRONLY | O_TRUNC); }, {}, given), 0);
  EXPECT_EQ(Confined([&] { return ErrorOfOpen(folder_ / "other/missing", O_WRONLY | O_CREAT); }, {}, given), EACCES);
  EXPECT_EQ(Confined([&] { return ErrorOf(::unlink((folder_ / "other/file").c_str())); }, {}, given), EACCES);
}

TEST_F(ConfineTest, NoProgramIsStarted) {
  if (HasSanitizers()) {
    EXPECT_EQ(SaysSo(), 0);
    return;
  }
  const auto run = [] {
    char* const arguments[] = {const_cast<char*>("true"), nullptr};
    return ErrorOf(::execv("/bin/true", arguments));
  };
  EXPECT_EQ(Confined(run), EPERM);
  EXPECT_EQ(Confined(run, {"/bin/true"}), 0);
  if (HasLandlock()) {
    EXPECT_EQ(Confined(run, {"/bin/false"}), EACCES);
  }
}

TEST_F(ConfineTest, OnlySocketsOfAJobExist) {
  if (HasSanitizers()) {
    EXPECT_EQ(SaysSo(), 0);
    return;
  }
  const auto socket = [](int domain, int type) { return ErrorOf(::socket(domain, type, 0)); };
  EXPECT_EQ(Confined([&] { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC); }), 0);
  EXPECT_EQ(Confined([&] { return socket(AF_INET, SOCK_DGRAM); }), 0);
  EXPECT_EQ(Confined([&] { return socket(AF_UNIX, SOCK_STREAM); }), EACCES);
  EXPECT_EQ(Confined([&] { return socket(AF_PACKET, SOCK_RAW); }), EACCES);
  EXPECT_EQ(Confined([&] { return ErrorOf(::socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK, IPPROTO_ICMP)); }), EACCES);
}

TEST_F(ConfineTest, OtherRightsAreLost) {
  if (HasSanitizers()) {
    EXPECT_EQ(SaysSo(), 0);
    return;
  }
  EXPECT_EQ(Confined([] { return ErrorOf(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }), EPERM);
  EXPECT_EQ(Confined([] { return ErrorOf(::syscall(SYS_unshare, 0x10000000)); }), EPERM);
  EXPECT_EQ(Confined([] { return ErrorOf(::syscall(SYS_bpf, 0, nullptr, 0)); }), EPERM);
  EXPECT_EQ(Confined([] { return ErrorOf(::syscall(SYS_io_uring_setup, 1, nullptr)); }), EPERM);
  EXPECT_EQ(Confined([] { return ErrorOf(::syscall(SYS_keyctl, 0, 0)); }), EPERM);
}

// Libraries begin threads before main.
TEST_F(ConfineTest, ThreadsThatExistAlreadyLoseSystemCallsToo) {
  if (HasSanitizers()) {
    EXPECT_EQ(SaysSo(), 0);
    return;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<int> stage = 0;
    int error = -1;
    std::thread early([&] {
      while (stage == 0) std::this_thread::yield();
      error = ErrorOf(::socket(AF_UNIX, SOCK_STREAM, 0));
    });
    const bool confined = Confine({}).ok();
    stage = 1;
    early.join();
    ::_exit(confined ? error : 200);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), EACCES);
}

TEST_F(ConfineTest, OfflineProcessesHaveOnlyTheSocketsThatWereOpen) {
  if (HasSanitizers()) {
    EXPECT_EQ(SaysSo(), 0);
    return;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    int ends[2] = {};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) ::_exit(1);
    if (!Confine({.writable = {folder_ / "job"}, .offline = true}).ok()) ::_exit(200);
    for (const int domain : {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK}) {
      if (ErrorOf(::socket(domain, SOCK_STREAM, 0)) != EACCES) ::_exit(2);
    }
    char byte = 'x';
    if (::send(ends[0], &byte, 1, 0) != 1 || ::recv(ends[1], &byte, 1, 0) != 1) ::_exit(3);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : 201, 0);
}

}  // namespace
}  // namespace medley::worker
