// How far `medley predict` and `medley evaluate` are, as they say it.
#include "cli/model_data.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::cli {
namespace {

class ModelDataTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *base::MakeTempDir("medley-model-data");
    std::ofstream(folder_ / "a.csv") << std::string(3'000'000, 'x');
    std::ofstream(folder_ / "b.csv") << std::string(1'000'000, 'x');
  }
  void TearDown() override { base::RemoveTempDir(folder_); }

  std::filesystem::path folder_;
  base::FakeClock clock_;
  std::vector<std::string> lines_;
};

TEST_F(ModelDataTest, SaysBytesOfAllFilesWithTheirPartAndTheRows) {
  worker::ReadProgress progress("*.csv", clock_, [&](const std::string& line) { lines_.push_back(line); });
  const std::vector<std::string> paths = {folder_ / "a.csv", folder_ / "b.csv"};
  ExpectFiles(paths, progress);
  std::string buffer(1'000'000, '\0');
  for (const std::string& path : paths) {
    auto file = DataFile::Open(path, worker::ExportedModel());
    ASSERT_THAT(file, base::IsOk());
    const worker::RowStream::Read read = file->Reader(&progress);
    while (true) {
      const auto bytes = read(buffer.data(), buffer.size());
      ASSERT_THAT(bytes, base::IsOk());
      if (*bytes == 0) break;
      progress.Parsed(1000);
      clock_.Advance(base::seconds(3));
    }
  }
  progress.Parsed(0);
  EXPECT_THAT(lines_, testing::ElementsAre("reading *.csv: 3.0 of 4.0 MB (75 %), 2,000 rows",
                                           "reading *.csv: 4.0 of 4.0 MB (100 %), 4,000 rows"));
}

TEST_F(ModelDataTest, WhatHasNoLengthSaysRowsAlone) {
  worker::ReadProgress progress("-", clock_, [&](const std::string& line) { lines_.push_back(line); });
  ExpectFiles({"-", (folder_ / "absent.csv").string()}, progress);
  clock_.Advance(base::seconds(6));
  progress.Parsed(7);
  EXPECT_THAT(lines_, testing::ElementsAre("reading -: 7 rows"));
}

}  // namespace
}  // namespace medley::cli
