#include "common/base/file.h"

#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::base {
namespace {

TEST(FileTest, WritesAtomicallyAndReadsBack) {
  const auto dir = *MakeTempDir("medley-file-test");
  EXPECT_THAT(WriteFileAtomic(dir / "a", "one"), IsOk());
  EXPECT_THAT(WriteFileAtomic(dir / "a", "two"), IsOk());
  EXPECT_EQ(*ReadFile(dir / "a"), "two");
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir)) ++files;
  EXPECT_EQ(files, 1) << "a temporary file was left behind";
  base::RemoveTempDir(dir);
}

TEST(FileTest, CopiesTheBeginningOfAFileOverItself) {
  const auto dir = *MakeTempDir("medley-file-test");
  std::string text;
  for (int i = 0; i < 50000; ++i) text += std::to_string(i) + '\n';  // several blocks
  ASSERT_THAT(WriteFileAtomic(dir / "a", text), IsOk());
  for (const size_t bytes : {text.size(), text.size() - 3, size_t{1} << 16, size_t{7}, size_t{0}}) {
    ASSERT_THAT(CopyFileAtomic(dir / "a", static_cast<int64_t>(bytes), dir / "a"), IsOk());
    EXPECT_EQ(*ReadFile(dir / "a"), text.substr(0, bytes));
  }
  EXPECT_THAT(CopyFileAtomic(dir / "a", 1, dir / "b"), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_FALSE(std::filesystem::exists(dir / "b"));
  EXPECT_THAT(CopyFileAtomic(dir / "c", 0, dir / "b"), StatusIs(absl::StatusCode::kNotFound));
  base::RemoveTempDir(dir);
}

TEST(FileTest, SaysWhatItCouldNotRead) {
  EXPECT_THAT(ReadFile("/nonexistent/x"), StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("/nonexistent/x")));
  EXPECT_THAT(WriteFileAtomic("/nonexistent/x", ""), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ReadFile("/dev/zero", 1000), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(HashTest, IsStable) {
  EXPECT_EQ(HashHex(""), "2d06800538d394c2");  // XXH3's published value for the empty input
  EXPECT_NE(Hash64("a", 1), Hash64("a", 2));
}

}  // namespace
}  // namespace medley::base
