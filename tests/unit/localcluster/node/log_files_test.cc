#include "localcluster/node/log_files.h"
#include "common/base/testing/temp_dir.h"

#include <gtest/gtest.h>

#include <thread>

#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"

namespace medley::localcluster {
namespace {

namespace fs = std::filesystem;
using base::IsOk;

class LogFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = base::MakeTempDir("log_files_test");
    ASSERT_THAT(folder, IsOk());
    folder_ = *folder;
  }
  void TearDown() override { base::RemoveTempDir(folder_); }
  std::string Read(const LogOptions& options) {
    std::string text;
    EXPECT_THAT(ReadLogFiles(
                    folder_ / "c" / "0.log", options, clock_, {}, [] { return true; },
                    [&](std::string_view bytes) {
                      text += bytes;
                      return true;
                    }),
                IsOk());
    return text;
  }
  fs::path folder_;
  base::SystemClock clock_;
};

TEST(TailOffsetTest, CountsLines) {
  EXPECT_EQ(TailOffset("a\nb\nc\n", 1), 4u);
  EXPECT_EQ(TailOffset("a\nb\nc\n", 2), 2u);
  EXPECT_EQ(TailOffset("a\nb\nc\n", 9), 0u);
  EXPECT_EQ(TailOffset("a\nb", 1), 2u);
  EXPECT_EQ(TailOffset("a\nb\n", 0), 4u);
  EXPECT_EQ(TailOffset("", 3), 0u);
  EXPECT_EQ(TailOffset("\n\n", 1), 1u);
}

TEST_F(LogFilesTest, SizeIsBoundedAndTheNewestIsKept) {
  auto writer = LogWriter::Open(folder_ / "c" / "0.log", 1000, clock_);
  ASSERT_THAT(writer, IsOk());
  for (int i = 0; i < 1000; ++i) writer->Write("line " + std::to_string(1000 + i) + "\n");
  uintmax_t size = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "c")) size += entry.file_size();
  EXPECT_LE(size, 2000u);
  EXPECT_EQ(writer->lost_bytes(), 0);
  LogOptions tail;
  tail.tail_lines = 2;
  EXPECT_EQ(Read(tail), "line 1998\nline 1999\n");
  const std::string all = Read({});
  EXPECT_GT(all.size(), 250u);  // the files also contain the times
  EXPECT_EQ(all.substr(0, 5), "line ");
}

TEST_F(LogFilesTest, LimitBytes) {
  auto writer = LogWriter::Open(folder_ / "c" / "0.log", 1000, clock_);
  ASSERT_THAT(writer, IsOk());
  writer->Write("0123456789");
  LogOptions options;
  options.limit_bytes = 4;
  EXPECT_EQ(Read(options), "0123");
}

// A program can put links into its pod's folder, among them in the place of its log.
TEST_F(LogFilesTest, LinksAreFollowedNeitherByReadersNorByTheWriter) {
  const fs::path secret = folder_ / "secret";
  ASSERT_THAT(base::WriteFileAtomic(secret, "2026-11-21T07:15:00.000000000Z the user's\n"), IsOk());
  fs::create_directories(folder_ / "c");
  const auto read = [&](const fs::path& path) {
    return ReadLogFiles(
        path, {}, clock_, {}, [] { return true; }, [](std::string_view) { return true; });
  };
  const auto denied = base::StatusIs(absl::StatusCode::kPermissionDenied, testing::HasSubstr("symbolic link"));
  fs::create_symlink(secret, folder_ / "c" / "0.log");
  EXPECT_THAT(read(folder_ / "c" / "0.log"), denied);
  EXPECT_THAT(LogWriter::Open(folder_ / "c" / "0.log", 1000, clock_).status(), denied);
  // Nor the older part.
  ASSERT_THAT(LogWriter::Open(folder_ / "c" / "1.log", 1000, clock_), IsOk());
  fs::create_symlink(secret, folder_ / "c" / "1.log.1");
  std::string text;
  EXPECT_THAT(ReadLogFiles(
                  folder_ / "c" / "1.log", {}, clock_, {}, [] { return true; },
                  [&](std::string_view bytes) {
                    text += bytes;
                    return true;
                  }),
              IsOk());
  EXPECT_EQ(text, "");
  // Nor the folder of the logs.
  fs::create_directories(folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "d");
  EXPECT_THAT(LogWriter::Open(folder_ / "d" / "0.log", 1000, clock_).status(), denied);
  EXPECT_TRUE(fs::is_empty(folder_ / "elsewhere"));
  EXPECT_THAT(base::ReadFile(secret), base::IsOkAndHolds(testing::EndsWith("the user's\n")));
}

TEST_F(LogFilesTest, ANewPartIsNotWrittenThroughALink) {
  const fs::path secret = folder_ / "secret";
  ASSERT_THAT(base::WriteFileAtomic(secret, "the user's"), IsOk());
  auto writer = LogWriter::Open(folder_ / "c" / "0.log", 100, clock_);
  ASSERT_THAT(writer, IsOk());
  fs::create_symlink(secret, folder_ / "c" / "0.log.new");
  // The folder's name leads elsewhere now; the writer keeps its folder.
  fs::rename(folder_ / "c", folder_ / "moved");
  fs::create_directories(folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "c");
  for (int i = 0; i < 20; ++i) writer->Write("a line that is long enough\n");
  EXPECT_EQ(writer->lost_bytes(), 0);
  EXPECT_TRUE(fs::is_empty(folder_ / "elsewhere"));
  EXPECT_TRUE(fs::exists(folder_ / "moved" / "0.log.1"));
  EXPECT_THAT(base::ReadFile(secret), base::IsOkAndHolds("the user's"));
}

constexpr char kFirst[] = "2026-11-21T07:15:00.000000000Z ";
constexpr char kSecond[] = "2026-11-21T07:15:02.500000000Z ";

class TimedLogTest : public LogFilesTest {
 protected:
  void SetUp() override {
    LogFilesTest::SetUp();
    auto writer = LogWriter::Open(folder_ / "c" / "0.log", 1 << 20, time_);
    ASSERT_THAT(writer, IsOk());
    writer->Write("one\ntw");
    time_.Advance(base::milliseconds(2500));
    writer->Write("o\nthree\n\n");
  }
  // A FakeClock starts with 1000 s already elapsed.
  base::FakeClock time_{*base::ParseTime("2026-11-21T07:15:00Z") - base::seconds(1000)};
};

TEST_F(TimedLogTest, ALineHasTheTimeOfItsFirstByte) {
  EXPECT_EQ(Read({}), "one\ntwo\nthree\n\n");
  EXPECT_EQ(Read({.timestamps = true}),
            std::string(kFirst) + "one\n" + kFirst + "two\n" + kSecond + "three\n" + kSecond + "\n");
}

TEST_F(TimedLogTest, SinceTailAndLimitCombine) {
  const base::WallTime later = time_.Now();
  EXPECT_EQ(Read({.since = later}), "three\n\n");
  EXPECT_EQ(Read({.since = later + base::milliseconds(1)}), "");
  EXPECT_EQ(Read({.tail_lines = 3, .since = later - base::seconds(1)}), "three\n\n");
  EXPECT_EQ(Read({.tail_lines = 1, .since = later - base::seconds(9)}), "\n");
  // The limit counts all bytes sent, including the times.
  EXPECT_EQ(Read({.limit_bytes = 33, .timestamps = true}), std::string(kFirst) + "on");
}

TEST_F(TimedLogTest, AWriterContinuesALineThatAnotherBegan) {
  {
    auto writer = LogWriter::Open(folder_ / "c" / "0.log", 1 << 20, time_);
    ASSERT_THAT(writer, IsOk());
    writer->Write("fo");
  }
  auto writer = LogWriter::Open(folder_ / "c" / "0.log", 1 << 20, time_);
  ASSERT_THAT(writer, IsOk());
  writer->Write("ur\n");
  EXPECT_EQ(Read({.tail_lines = 1}), "four\n");
}

TEST_F(LogFilesTest, ALineThatDoesNotFitIsCut) {
  auto writer = LogWriter::Open(folder_ / "c" / "0.log", 150, clock_);
  ASSERT_THAT(writer, IsOk());
  writer->Write("first\n" + std::string(40, 'a'));
  writer->Write(std::string(40, 'b') + "\n");
  EXPECT_EQ(Read({}), "first\n" + std::string(40, 'a') + "\n" + std::string(40, 'b') + "\n");
}

TEST(LogLinesTest, PiecesOfAnySizeGiveTheSame) {
  const std::string stored = std::string(kFirst) + "one\n" + kSecond + "two\n" + kSecond + "three";
  LogOptions options{.since = *base::ParseTime("2026-11-21T07:15:01Z"), .timestamps = true};
  for (size_t size = 1; size <= stored.size(); ++size) {
    LogLines lines(options);
    std::string text;
    for (size_t at = 0; at < stored.size(); at += size) text += lines.Take(std::string_view(stored).substr(at, size));
    EXPECT_EQ(text, std::string(kSecond) + "two\n" + kSecond + "three") << size;
  }
}

TEST_F(LogFilesTest, FollowsAcrossPartsToTheEnd) {
  auto writer = LogWriter::Open(folder_ / "c" / "0.log", 64, clock_);
  ASSERT_THAT(writer, IsOk());
  writer->Write("first\n");
  base::Mutex mutex;
  base::CondVar changed;
  std::string text;
  std::atomic<bool> ended = false;
  std::jthread reader([&](std::stop_token stop) {
    LogOptions options;
    options.follow = true;
    EXPECT_THAT(ReadLogFiles(
                    folder_ / "c" / "0.log", options, clock_, stop, [&] { return ended.load(); },
                    [&](std::string_view bytes) {
                      base::MutexLock lock(mutex);
                      text += bytes;
                      changed.NotifyAll();
                      return true;
                    }),
                IsOk());
  });
  std::string expected = "first\n";
  for (int i = 0; i < 6; ++i) {  // each fills much of one file and is read before the next is written
    {
      base::MutexLock lock(mutex);
      ASSERT_TRUE(changed.WaitFor(mutex, {}, base::seconds(60), [&] { return text == expected; })) << text;
    }
    const std::string line = "line " + std::to_string(i) + std::string(40, '.') + "\n";
    writer->Write(line);
    expected += line;
  }
  ended = true;
  reader.join();
  EXPECT_EQ(text, expected);
}

}  // namespace
}  // namespace medley::localcluster
