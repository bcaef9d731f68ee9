// One process of a machine makes samples while the others wait; one that is killed, at whatever instruction, stops
// nobody and leaves nothing that is used.
#include "worker/data/sample_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/data/dataset.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;
using testing::SizeIs;

// Much time passes between two looks at it, so that every piece of text that is read is worth a line.
class HastyClock final : public base::Clock {
 public:
  base::WallTime Now() const override { return {}; }
  base::SteadyTime Steady() const override {
    ++looks_;
    return base::SteadyTime(base::seconds(3600) * looks_ * looks_);
  }
  bool SleepUntil(base::SteadyTime, std::stop_token) override { return true; }

 private:
  mutable int64_t looks_ = 0;
};

class SampleLockTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = *base::MakeTempDir("medley-sample-lock");
    folder_ = root_ / "samples";
    path_ = root_ / "making-x";
    spec_.train = {.uri = "file:///x.csv", .format = "csv"};
    spec_.schema.header = true;
    spec_.schema.names.label = "y";
    spec_.schema.names.numeric = {"a"};
    spec_.schema.numeric = {-1};
  }
  void TearDown() override { base::RemoveTempDir(root_); }

  absl::StatusOr<std::optional<SampleLock>> Take(std::stop_token stop = {}) {
    return SampleLock::Take(path_, clock_, stop, [this] { ++waits_; });
  }

  // The clock of the file system has steps of some milliseconds.
  void TouchVisibly(const SampleLock& lock) {
    const auto before = fs::last_write_time(path_);
    do lock.Touch();
    while (fs::last_write_time(path_) == before);
  }

  void WriteTable(int rows) {
    base::Rng rng(5);
    std::string text = "y,a\n";
    for (int row = 0; row < rows; ++row) text += fmt::format("{},{}\n", rng.Below(2), rng.Below(1000));
    std::ofstream(root_ / "x.csv") << text;
    // A file that was changed just now is not shared.
    const timespec old[2] = {{.tv_sec = 1'700'000'000, .tv_nsec = 0}, {.tv_sec = 1'700'000'000, .tv_nsec = 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, (root_ / "x.csv").c_str(), old, 0), 0);
    struct stat made = {}, now = {};
    ASSERT_EQ(stat((root_ / "x.csv").c_str(), &made), 0);
    do {
      fs::remove(root_ / "probe");
      std::ofstream(root_ / "probe") << "1";
      ASSERT_EQ(stat((root_ / "probe").c_str(), &now), 0);
    } while ((now.st_ctim.tv_sec - made.st_ctim.tv_sec) * 1'000'000'000 + now.st_ctim.tv_nsec - made.st_ctim.tv_nsec <
             80'000'000);
  }
  LoadOptions InFile() {
    LoadOptions options{.embedding_rows = 1000, .threads = 1, .root = root_.string()};
    options.place = {.folder = folder_, .most_in_memory = 0};
    return options;
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    std::error_code absent;
    for (const auto& entry : fs::directory_iterator(folder_, absent)) files.push_back(entry.path().filename());
    return files;
  }

  fs::path root_, folder_, path_;
  base::FakeClock clock_;
  std::atomic<int> waits_ = 0;
  model::DataSpec spec_;
};

TEST_F(SampleLockTest, TheSecondWaitsUntilTheFirstEnds) {
  std::optional<SampleLock> first = **Take();
  std::jthread second([&] {
    const auto lock = Take();
    ASSERT_THAT(lock, IsOk());
    EXPECT_TRUE(lock->has_value());
  });
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  first.reset();
  ASSERT_TRUE(clock_.WakeSleeper(base::seconds(1)));
  second.join();
  EXPECT_GT(waits_, 0);
  EXPECT_FALSE(fs::exists(path_)) << "a lock ends with its file";
}

TEST_F(SampleLockTest, ASilentHolderIsNotWaitedForAndOneThatWorksIs) {
  const std::optional<SampleLock> first = **Take();
  std::atomic<bool> ended = false;
  std::jthread second([&] {
    const auto lock = Take();
    ASSERT_THAT(lock, IsOk());
    EXPECT_FALSE(lock->has_value());
    ended = true;
  });
  for (int i = 0; i < 5; ++i) {  // far longer than the patience, but it works
    ASSERT_TRUE(clock_.WaitForSleepers(1));
    TouchVisibly(*first);
    const int before = waits_;
    clock_.Advance(base::milliseconds(20));
    while (waits_ == before) std::this_thread::yield();  // it has seen the new time
    ASSERT_TRUE(clock_.WaitForSleepers(1));
    clock_.Advance(kSampleLockPatience - base::seconds(1));
    ASSERT_FALSE(ended);
  }
  while (!ended) clock_.Advance(base::seconds(1));
}

TEST_F(SampleLockTest, NobodyWaitsInVain) {
  std::optional<SampleLock> first = **Take();
  std::jthread second([&] {
    const auto lock = Take();
    ASSERT_THAT(lock, IsOk());
    EXPECT_FALSE(lock->has_value()) << "all that wait go on at the same time";
  });
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  first->MadeNothing();
  first.reset();
  ASSERT_TRUE(clock_.WakeSleeper(base::seconds(1)));
  second.join();
  std::ofstream(path_) << "x";  // left by one that was killed
  const auto third = Take();
  ASSERT_THAT(third, IsOk());
  EXPECT_TRUE(third->has_value());
  EXPECT_EQ(fs::file_size(path_), 0U);
}

TEST_F(SampleLockTest, AStopEndsTheWait) {
  const std::optional<SampleLock> first = **Take();
  std::stop_source stop;
  std::jthread second([&] {
    EXPECT_THAT(Take(stop.get_token()).status(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped")));
  });
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  stop.request_stop();
}

TEST_F(SampleLockTest, WhereThereAreNoLocksNobodyWaits) {
  path_ = "/proc/making-x";
  const auto lock = Take();
  ASSERT_THAT(lock, IsOk());
  EXPECT_FALSE(lock->has_value());
  path_ = root_ / "link";
  fs::create_symlink(root_ / "elsewhere", path_);
  EXPECT_FALSE((*Take()).has_value()) << "a link of another user is not followed";
  EXPECT_FALSE(fs::exists(root_ / "elsewhere"));
}

// One of four processes that begin at the same time reads the text.
TEST_F(SampleLockTest, OneProcessParsesATableThatSeveralNeed) {
  WriteTable(200'000);
  int ends[2], begin[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(pipe(begin), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    close(begin[1]);
    char byte = 0;
    if (read(begin[0], &byte, 1) != 0) _exit(2);  // until all exist
    LoadOptions options = InFile();
    HastyClock clock;
    int lines = 0;
    ReadProgress progress("x", clock, [&](const std::string&) { ++lines; });
    options.progress = &progress;
    const auto data = Dataset::Load(spec_.train, spec_, nullptr, options);
    if (!data.ok() || !(*data)->mapped() || (*data)->rows() != 200'000) _exit(3);
    byte = lines > 0 ? 'p' : 'r';
    _exit(write(ends[1], &byte, 1) == 1 ? 0 : 4);
  }
  close(begin[0]);
  close(begin[1]);
  close(ends[1]);
  std::string parsed;
  for (char byte = 0; read(ends[0], &byte, 1) == 1;) parsed += byte;
  close(ends[0]);
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(std::ranges::count(parsed, 'p'), 1) << parsed;
  EXPECT_THAT(Files(), SizeIs(1));
}

// What others see of a process changes only by its system calls: ends it at each of them, in turn.
TEST_F(SampleLockTest, AHolderThatIsKilledAtAnySystemCallLeavesNothingThatIsUsed) {
  WriteTable(300);
  const auto right = Dataset::Load(spec_.train, spec_, nullptr, {.embedding_rows = 1000, .root = root_.string()});
  ASSERT_THAT(right, IsOk());
  int killed = 0;
  bool ended = false;
  for (int last = 1; !ended; last += last < 40 ? 1 : 3) {
    SCOPED_TRACE(fmt::format("killed at system call {}", last));
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(9);
      raise(SIGSTOP);
      const auto data = Dataset::Load(spec_.train, spec_, nullptr, InFile());
      _exit(data.ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSTOPPED(status)) << status;
    ASSERT_EQ(ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD), 0);
    for (int stops = 0; stops < last && !ended;) {
      ASSERT_EQ(ptrace(PTRACE_SYSCALL, child, nullptr, nullptr), 0);
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ended = WIFEXITED(status) || WIFSIGNALED(status);
      if (!ended && WSTOPSIG(status) == (SIGTRAP | 0x80)) ++stops;
    }
    if (ended) {
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    } else {
      kill(child, SIGKILL);
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ++killed;
    }
    LoadOptions options = InFile();
    options.clock = &clock_;  // which does not move: nobody is waited for
    std::vector<std::string> said;
    options.say = [&](const std::string& sentence) { said.push_back(sentence); };
    const auto data = Dataset::Load(spec_.train, spec_, nullptr, options);
    ASSERT_THAT(data, IsOk());
    EXPECT_EQ((*data)->digest(), (*right)->digest());
    EXPECT_EQ((*data)->all().numerics, (*right)->all().numerics);
    EXPECT_THAT(said, SizeIs(0)) << "no file that was damaged";
    // The next process that makes a file removes what remained.
    model::DataSpec other = spec_;
    other.schema.numeric_buckets = 3;
    ASSERT_THAT(Dataset::Load(other.train, other, nullptr, options), IsOk());
    EXPECT_THAT(Files(), SizeIs(2));
    for (const std::string& file : Files()) EXPECT_THAT(file, testing::StartsWith("samples-"));
    base::RemoveTempDir(folder_);
  }
  std::printf("killed at %d system calls\n", killed);
  EXPECT_GT(killed, 40);
}

}  // namespace
}  // namespace medley::worker
