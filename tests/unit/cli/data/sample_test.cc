#include "cli/data/sample.h"

#include <gmock/gmock.h>

#include <fstream>

#include "cli/data/guess.h"
#include "cli/data/head_view.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<Sample> Parse(std::string_view text) {
  return ParseSample("x.csv", text, static_cast<int64_t>(text.size()));
}

TEST(SampleTest, FindsTheDelimiterAndSplitsRows) {
  const auto comma = Parse(
      "\xef\xbb\xbf"
      "a,\"b, c\",d\r\n1,\"2, 3\",4\r\n\r\n");
  ASSERT_THAT(comma, base::IsOk());
  EXPECT_EQ(comma->delimiter, ',');
  EXPECT_THAT(comma->rows, ElementsAre(ElementsAre("a", "b, c", "d"), ElementsAre("1", "2, 3", "4")));
  EXPECT_TRUE(comma->whole);
  EXPECT_EQ(Parse("a\tb\n1,5\t2\n")->delimiter, '\t');
  EXPECT_EQ(Parse("a;b;c\n1,5;2,5;3,5\n")->delimiter, ';');
  EXPECT_EQ(Parse("a\n1\n")->columns, 1u);
}

TEST(SampleTest, ReadsRowsOfSeveralLines) {
  const auto sample = Parse("id;text\n1;\"a, b\nc; d\"\n2;x\n3;y\n");
  ASSERT_THAT(sample, base::IsOk());
  EXPECT_EQ(sample->delimiter, ';');
  EXPECT_THAT(sample->rows[1], ElementsAre("1", "a, b\nc; d"));
  EXPECT_EQ(Parse("a,b\ncaf\xe9,1\n")->not_utf8_line, 2);
  EXPECT_EQ(Parse("a,b\ncaf\xc3\xa9,1\n")->not_utf8_line, 0);
  const auto cut = ParseSample("x.csv", "a,b\n1,\"x\ny\"\n2,\"un", 100);
  EXPECT_EQ(cut->rows.size(), 2u) << "the last row may be longer";
}

TEST(SampleTest, RefusesFilesThatAreNotTextTables) {
  const auto error = [](std::string_view text) { return base::Message(Parse(text).status()); };
  EXPECT_EQ(error(""), "x.csv: the file is empty");
  EXPECT_EQ(error("\xef\xbb\xbf\n \r\n"), "x.csv: the file is empty");
  EXPECT_THAT(error(std::string_view("a,b\0\n", 5)), HasSubstr("x.csv: is binary, not a table of text in UTF-8"));
  EXPECT_THAT(error("PK\x03\x04zip"), HasSubstr("is a ZIP archive or a spreadsheet"));
  EXPECT_THAT(error("a,b\n1,2\n1\n2\n3,4\n"), HasSubstr("x.csv:3: expected 2 columns, found 1 (2 of 5 rows differ)"));
}

TEST(SampleTest, ARowThatDiffersIsCounted) {
  const auto sample = Parse("a,b\n1,2\n3,4\n5,6\n7\n8,9\n");
  ASSERT_THAT(sample, base::IsOk());
  EXPECT_EQ(sample->bad_rows, 1);
  EXPECT_EQ(sample->rows.size(), 5u);
}

TEST(SampleTest, TheNumberOfRowsIsEstimatedFromAPart) {
  const std::string text = "a,b\n1,2\n3,4\n5,";
  const auto sample = ParseSample("x.csv", text, 400);
  ASSERT_THAT(sample, base::IsOk());
  EXPECT_FALSE(sample->whole);
  EXPECT_EQ(sample->rows.size(), 3u) << "the last line may be longer";
  EXPECT_EQ(sample->estimated_rows, 100);
  EXPECT_EQ(ParseSample("x.csv", "a,b\n1,2\n3,4\n", 12, {.rows = 2})->rows.size(), 2u);
}

TEST(SampleTest, TheTableHasEveryColumn) {
  const auto sample = Parse("age,name of\na long name that does not fit into a cell,x\n3,\n");
  ASSERT_THAT(sample, base::IsOk());
  const std::string text = HeadText(*sample, GuessTable(*sample), 1);
  EXPECT_THAT(text, HasSubstr("x.csv: 2 columns, 2 rows, separated by commas, with a header"));
  EXPECT_THAT(HeadText(*sample, GuessTable(*sample), 9), HasSubstr("a long name that does..."));
}

TEST(SampleTest, ReadsFilesAndPatterns) {
  const auto folder = base::MakeTempDir("sample");
  ASSERT_THAT(folder, base::IsOk());
  std::ofstream(*folder / "part-2.csv") << "a,b\n3,4\n";
  std::ofstream(*folder / "part-1.csv") << "a,b\n1,2";
  EXPECT_EQ(ReadSample(*folder / "part-1.csv")->rows.size(), 2u);
  const auto parts = ReadSample(*folder / "part-*.csv");
  ASSERT_THAT(parts, base::IsOk());
  EXPECT_THAT(parts->rows[1], ElementsAre("1", "2"));
  EXPECT_FALSE(parts->whole);
  EXPECT_EQ(ReadSample(*folder / "absent.csv").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadSample(*folder / "absent*.csv").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadSample(*folder).ok()) << "a folder";
  base::RemoveTempDir(*folder);
}

}  // namespace
}  // namespace medley::cli
