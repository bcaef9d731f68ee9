// Files of Parquet and Arrow of all types, whole and damaged, against the text of the same table.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/data/guess.h"
#include "cli/data/sample.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/data/dataset.h"
#include "worker/data/label_values.h"
#include "worker/data/memory_estimate.h"
#include "worker/data/text_file.h"

namespace medley::worker {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

std::filesystem::path DataFolder() {
  return std::filesystem::path(std::getenv("MEDLEY_SOURCE_DIR")) / "tests/data/columns";
}

std::string Bytes(const std::filesystem::path& path) {
  std::stringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

std::string FormatOfName(const std::string& name) { return std::filesystem::path(name).extension().string().substr(1); }

model::DataSpec SpecOf(const std::string& folder, const std::string& name) {
  model::DataSpec spec;
  spec.train = {.uri = "file://" + folder + "/" + name, .format = FormatOfName(name)};
  spec.schema.header = true;
  spec.schema.label_column = -1;
  spec.schema.names.label = "clicked";
  spec.schema.names.numeric = {"small", "large", "unsigned", "half", "single", "double", "price"};
  spec.schema.names.categorical = {"text", "bytes", "category", "local", "nothing", "day"};
  spec.schema.numeric.assign(spec.schema.names.numeric.size(), -1);
  spec.schema.categorical.assign(spec.schema.names.categorical.size(), -1);
  return spec;
}

absl::StatusOr<std::shared_ptr<const Dataset>> Load(const model::DataSpec& spec, int threads = 1) {
  return Dataset::Load(spec.train, spec, nullptr, {.embedding_rows = 1000, .threads = threads});
}

class ArrowTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("arrow"); }
  void TearDown() override { base::RemoveTempDir(folder_); }
  std::string Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  std::string Error(const std::string& name, const std::string& bytes) {
    Write(name, bytes);
    return base::Message(Load(SpecOf(folder_, name)).status());
  }

  std::filesystem::path folder_;
};

constexpr const char* kFiles[] = {"none.parquet",   "snappy.parquet", "gzip.parquet", "zstd.parquet", "lz4.parquet",
                                  "brotli.parquet", "mixed.parquet",  "lz4.arrow",    "stream.arrow", "codes.arrow"};

TEST_F(ArrowTest, FilesAreTheTextOfTheirTable) {
  const std::string text = Bytes(DataFolder() / "table.csv");
  for (const char* const name : kFiles) {
    const auto read = ReadText(DataFolder() / name);
    ASSERT_THAT(read, base::IsOk()) << name;
    EXPECT_EQ(*read, text) << name;
  }
}

TEST_F(ArrowTest, FilesHaveTheSamplesOfTheirTable) {
  const auto table = Load(SpecOf(DataFolder(), "table.csv"));
  ASSERT_THAT(table, base::IsOk());
  for (const char* const name : kFiles) {
    for (const int threads : {1, 3}) {
      const auto data = Load(SpecOf(DataFolder(), name), threads);
      ASSERT_THAT(data, base::IsOk()) << name;
      EXPECT_EQ((*data)->digest(), (*table)->digest()) << name << ", threads: " << threads;
    }
    const model::DataSpec spec = SpecOf(DataFolder(), name);
    EXPECT_THAT(CheckLabels(spec.train, spec, {}, "", {}), base::IsOk()) << name;
    const auto memory = EstimateMemory(spec.train, spec, "");
    ASSERT_THAT(memory, base::IsOk()) << name;
    EXPECT_GE(memory->rows, 120) << name;
    EXPECT_LE(memory->rows, 140) << name;  // texts have line breaks, which an estimate counts
  }
}

TEST_F(ArrowTest, SeveralFilesMayHaveTheirColumnsInAnyOrderAndType) {
  std::filesystem::copy(DataFolder() / "snappy.parquet", folder_ / "a.parquet");
  std::filesystem::copy(DataFolder() / "zstd.parquet", folder_ / "b.parquet");
  const auto data = Load(SpecOf(folder_, "*.parquet"));
  ASSERT_THAT(data, base::IsOk());
  EXPECT_EQ((*data)->rows(), 240);
  std::filesystem::copy(DataFolder() / "nested.parquet", folder_ / "c.parquet");
  EXPECT_THAT(base::Message(Load(SpecOf(folder_, "*.parquet")).status()),
              HasSubstr("c.parquet: the column 'tags' has the type list<"));
}

TEST_F(ArrowTest, DatesAndBadRowsAreThoseOfTheText) {
  model::DataSpec spec = SpecOf(DataFolder(), "snappy.parquet"), text = SpecOf(DataFolder(), "table.csv");
  for (model::DataSpec* each : {&spec, &text}) {
    each->schema.names.numeric = {"time", "time", "day", "clock"};
    each->schema.numeric = {-1, -1, -1, -1};
    each->schema.names.categorical = {"text", "local"};
    each->schema.categorical = {-1, -1};
    each->schema.parts = {model::ColumnPart::kTime, model::ColumnPart::kHour, model::ColumnPart::kTime,
                          model::ColumnPart::kTime};
  }
  const auto data = Load(spec), table = Load(text);
  ASSERT_THAT(data, base::IsOk());
  ASSERT_THAT(table, base::IsOk());
  EXPECT_EQ((*data)->digest(), (*table)->digest());
  spec = SpecOf(DataFolder(), "snappy.parquet");
  spec.schema.names.numeric.back() = "bytes";
  spec.schema.names.categorical[1] = "clock";
  EXPECT_THAT(base::Message(Load(spec).status()),
              HasSubstr("snappy.parquet: row 1: row group 0: column 13: 'b0' is not a number"));
}

TEST_F(ArrowTest, MedleyInitSeesTheFormatAndTheHeader) {
  for (const char* const name : {"snappy.parquet", "lz4.arrow"}) {
    const auto sample = cli::ReadSample(DataFolder() / name);
    ASSERT_THAT(sample, base::IsOk());
    EXPECT_EQ(cli::FormatOf(*sample)->name, FormatOfName(name));
    const cli::TableGuess table = cli::GuessTable(*sample);
    EXPECT_TRUE(table.header);
    EXPECT_EQ(table.columns.size(), 16u);
    EXPECT_EQ(table.columns[7].type, cli::ColumnType::kNumeric);
    EXPECT_EQ(table.columns[8].type, cli::ColumnType::kDate);
  }
}

TEST_F(ArrowTest, RefusesFilesThatHoldNoTable) {
  EXPECT_THAT(Error("x.parquet", "a,b\n1,2\n"), HasSubstr("x.parquet: the content is not Parquet"));
  EXPECT_THAT(Error("x.parquet", ""), HasSubstr("x.parquet: the content is not Parquet"));
  EXPECT_THAT(Error("x.arrow", Bytes(DataFolder() / "none.parquet")), HasSubstr("the content is not Arrow"));
  EXPECT_THAT(Error("x.parquet", Bytes(DataFolder() / "empty.parquet")), HasSubstr("the file has no rows"));
  EXPECT_THAT(Error("x.parquet", Bytes(DataFolder() / "nested.parquet")),
              HasSubstr("the column 'tags' has the type list<"));
  EXPECT_THAT(Error("x.arrow", Bytes(DataFolder() / "nested.arrow")),
              HasSubstr("the column 'tags' has the type list<"));
}

TEST_F(ArrowTest, CutFilesAreRefused) {
  for (const char* const name : kFiles) {
    const std::string bytes = Bytes(DataFolder() / name);
    for (size_t length = 600; length + 1 < bytes.size(); length += 601) {
      const std::string cut = bytes.substr(0, length);
      const std::string error = Error(std::string("cut-") + name, cut);
      if (std::string_view(name) != "stream.arrow") {
        ASSERT_THAT(error, HasSubstr("cut-")) << name << " of " << length << " bytes";
      }
    }
  }
}

TEST_F(ArrowTest, ACodeOutsideOfItsDictionaryIsRefused) {
  std::string bytes = Bytes(DataFolder() / "codes.arrow");
  const std::string codes("\0\1\2\3\0\4\5", 7);  // of 'text', of one byte each
  const size_t at = bytes.find(codes);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1] = 100;
  EXPECT_THAT(Error("x.arrow", bytes), HasSubstr("a value is outside of the dictionary"));
}

// A damaged page is found by its checksum, and its place is named.
TEST_F(ArrowTest, ADamagedPageIsNamedByRowGroupAndColumn) {
  std::string bytes = Bytes(DataFolder() / "none.parquet");
  const size_t at = bytes.find("b0");  // a value of 'bytes'
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  EXPECT_THAT(Error("x.parquet", bytes), AllOf(HasSubstr("row group 0, column 'bytes'"), HasSubstr("x.parquet")));
}

// No change may crash a process or take it much memory. Without checksums a change may go unseen.
TEST_F(ArrowTest, DamagedFilesDoNoHarm) {
  base::Rng rng(7);
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    const char* const name = kFiles[rng.Below(std::size(kFiles))];
    std::string bytes = Bytes(DataFolder() / name);
    for (uint64_t changes = 1 + rng.Below(4); changes > 0; --changes) {
      bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Below(256));
    }
    refused += Error(name, bytes).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 40);
}

}  // namespace
}  // namespace medley::worker
