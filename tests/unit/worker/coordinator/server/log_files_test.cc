// Tests the log in the job's folder.
#include "worker/coordinator/server/log_files.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class LogFilesTest : public testing::Test {
 protected:
  void SetUp() override { root_ = *base::MakeTempDir("medley-logs"); }
  void TearDown() override { base::RemoveTempDir(root_); }
  static void Append(LogFiles& files, const std::string& line) {
    LogBuffer buffer(size_t{8} << 20);
    buffer.Add(line);
    ASSERT_THAT(files.Drain(buffer), IsOk());
  }
  std::string All() const { return ReadLogFiles(Volume(root_)).value(); }
  int64_t Bytes() const {
    int64_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(root_ / kLogFolder))
      bytes += static_cast<int64_t>(entry.file_size());
    return bytes;
  }

  fs::path root_;
};

TEST_F(LogFilesTest, ContinuesAfterARestartAndFollowsATakeOver) {
  EXPECT_EQ(All(), "");
  Append(**LogFiles::Open(Volume(root_), 2), "first");
  const auto former = *LogFiles::Open(Volume(root_), 2);
  Append(*former, "second");
  const auto next = *LogFiles::Open(Volume(root_), 10);
  Append(*next, "fourth");
  Append(*former, "third");  // it does not know yet
  EXPECT_EQ(All(), "first\nsecond\nthird\nfourth\n");
}

TEST_F(LogFilesTest, IsBounded) {
  const std::string line(1 << 19, 'x');
  {
    const auto files = *LogFiles::Open(Volume(root_), 1);
    for (int i = 0; i < 20; ++i) Append(*files, std::to_string(i) + line);
  }
  EXPECT_LE(Bytes(), int64_t{4} << 20);
  EXPECT_THAT(All(), Not(StartsWith("0")));
  EXPECT_THAT(All(), HasSubstr("\n19x"));
  for (int term = 2; term < 20; ++term) {
    const auto files = *LogFiles::Open(Volume(root_), term);
    for (int i = 0; i < 10; ++i) Append(*files, std::to_string(term) + line);
    EXPECT_LE(Bytes(), int64_t{16} << 20);
  }
  EXPECT_THAT(All(), Not(HasSubstr("\n10x")));
  EXPECT_THAT(All(), HasSubstr("\n19x"));
}

TEST(LogBufferTest, DropsLinesOfAVolumeThatDoesNotAnswer) {
  LogBuffer buffer(10);
  EXPECT_TRUE(buffer.empty());
  for (const char* line : {"one", "two", "three"}) buffer.Add(line);
  EXPECT_EQ(buffer.Take(), "one\ntwo\n1 more lines are missing here, because the volume did not answer in time\n");
  EXPECT_TRUE(buffer.empty());
}

TEST(LogBufferTest, CopiesWhatIsLogged) {
  LogBuffer buffer;
  {
    const base::log::Copy copy([&buffer](std::string_view line) { buffer.Add(line); });
    base::log::Warn("lost", {{"member", "trainer-0"}});
  }
  base::log::Info("not copied any more");
  const std::string text = buffer.Take();
  EXPECT_THAT(text, EndsWith("Z warn  lost member=trainer-0\n"));
}

}  // namespace
}  // namespace medley::worker
