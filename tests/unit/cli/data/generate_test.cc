#include "cli/data/generate.h"

#include <gmock/gmock.h>

#include "cli/data/guess.h"
#include "cli/data/sample.h"
#include "common/base/hash.h"
#include "common/base/testing/status_matchers.h"

namespace medley::cli {
namespace {

std::string Rows(uint64_t seed, char delimiter, int rows) {
  CriteoRows generator(seed, delimiter);
  std::string text;
  generator.AppendHeader(text);
  for (int i = 0; i < rows; ++i) generator.AppendRow(text);
  return text;
}

absl::StatusOr<Sample> SampleOf(const std::string& text) {
  return ParseSample("x", text, static_cast<int64_t>(text.size()));
}

TEST(GenerateTest, EqualSeedsGiveEqualBytesOnEveryMachine) {
  EXPECT_EQ(base::HashHex(Rows(1, ',', 2000)), "c11c4cc334cf05b7");
  EXPECT_EQ(base::HashHex(Rows(1, ' ', 2000)), "9de8060866b7913e");
  EXPECT_NE(Rows(1, ',', 10), Rows(2, ',', 10));
}

TEST(GenerateTest, TheTableHasTheColumnsOfCriteo) {
  const auto sample = SampleOf(Rows(3, '\t', 3000));
  ASSERT_THAT(sample, base::IsOk());
  EXPECT_EQ(sample->columns, 40u);
  EXPECT_EQ(sample->bad_rows, 0);
  const TableGuess table = GuessTable(*sample);
  EXPECT_TRUE(table.header);
  EXPECT_EQ(table.columns[0].name, "label");
  EXPECT_EQ(table.columns[0].values.size(), 2u);
  EXPECT_EQ(table.columns[1].type, ColumnType::kNumeric);
  EXPECT_GT(table.columns[1].missing, 100);
  EXPECT_EQ(table.columns[14].type, ColumnType::kCategorical);
}

TEST(GenerateTest, LibsvmIsRecognisedAndHasAColumnForEachFeature) {
  const auto sample = SampleOf(Rows(3, ' ', 3000));
  ASSERT_THAT(sample, base::IsOk());
  EXPECT_EQ(sample->delimiter, ' ');
  EXPECT_EQ(sample->columns, 40u);
  EXPECT_EQ(sample->rows.size(), 3000u);
  EXPECT_EQ(sample->bad_rows, 0);
  EXPECT_FALSE(GuessTable(*sample).header);
  EXPECT_STREQ(FormatOf(*sample)->name, "libsvm");
}

}  // namespace
}  // namespace medley::cli
