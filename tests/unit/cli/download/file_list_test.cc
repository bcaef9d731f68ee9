#include "cli/download/file_list.h"

#include <gmock/gmock.h>

#include <string>

#include "common/base/testing/status_matchers.h"

namespace medley::cli {
namespace {

using base::IsOk;
using base::StatusIs;

TEST(FileListTest, IsRead) {
  const auto files = ParseFileList(R"({"files": [{"path": "export/model.json", "bytes": 12, "xxh3": "ab"}]})");
  ASSERT_THAT(files, IsOk());
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ(files->front().path, "export/model.json");
  EXPECT_EQ(files->front().bytes, 12);
  EXPECT_EQ(files->front().hash, "ab");
  EXPECT_THAT(ParseFileList(R"({"files": []})"), StatusIs(absl::StatusCode::kNotFound));
}

// Whatever the pod answers, this program neither ends nor writes outside of its folder.
TEST(FileListTest, AnythingElseIsRefused) {
  std::string many = R"({"files": [)";
  for (int i = 0; i < 10'001; ++i) many += std::string(i == 0 ? "" : ",") + R"({"path": "a", "bytes": 1})";
  for (const std::string& bad :
       {std::string(), std::string("[]"), std::string(R"({"files": 3})"), std::string(R"({"files": [3]})"),
        std::string(R"({"files": [{"path": 3, "bytes": 1}]})"),
        std::string(R"({"files": [{"path": "../a", "bytes": 1}]})"),
        std::string(R"({"files": [{"path": "/etc/a", "bytes": 1}]})"),
        std::string(R"({"files": [{"path": "a", "bytes": -1}]})"),
        std::string(R"({"files": [{"path": "a", "bytes": "1"}]})"), many + "]}", std::string(100'000, '['),
        R"({"files": [)" + std::string(kMostListBytes, ' ') + "]}"}) {
    EXPECT_THAT(ParseFileList(bad), StatusIs(absl::StatusCode::kDataLoss)) << bad.substr(0, 60);
  }
}

}  // namespace
}  // namespace medley::cli
