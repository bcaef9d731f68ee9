#include "common/base/gzip.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"

namespace medley::base {
namespace {

using testing::HasSubstr;

// printf 'layers: []\n' | gzip -n
const std::string kFile(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x49\xac\x4c\x2d"
    "\x2a\xb6\x52\x88\x8e\xe5\x02\x00\x2e\xbb\xac\xf9\x0b\x00\x00\x00",
    31);

TEST(GzipTest, ReadsAFile) {
  EXPECT_TRUE(IsGzip(kFile));
  EXPECT_FALSE(IsGzip("layers: []\n"));
  EXPECT_THAT(Gunzip(kFile, 11), IsOk());
  EXPECT_EQ(*Gunzip(kFile, 11), "layers: []\n");
}

TEST(GzipTest, RefusesWhatIsTooLarge) {
  EXPECT_THAT(Gunzip(kFile, 10), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("more than 10 bytes")));
}

TEST(GzipTest, RefusesWhatFollowsTheFile) {
  EXPECT_THAT(Gunzip(kFile + "more", 100), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4 bytes after")));
}

TEST(GzipTest, RefusesEveryTruncatedFile) {
  for (size_t size = 0; size < kFile.size(); ++size) {
    EXPECT_THAT(Gunzip(kFile.substr(0, size), 100), StatusIs(absl::StatusCode::kInvalidArgument)) << size;
  }
}

}  // namespace
}  // namespace medley::base
