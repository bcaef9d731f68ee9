#include "worker/data/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Split(std::string_view line, char delimiter = ',') {
  CsvFields fields;
  const absl::Status status = SplitCsv(line, delimiter, fields);
  EXPECT_TRUE(status.ok()) << base::ToString(status);
  return {fields.values.begin(), fields.values.end()};
}

TEST(CsvTest, TrimsAndKeepsEmptyFields) {
  EXPECT_THAT(Split("39, State-gov ,77516,, <=50K\r"), ElementsAre("39", "State-gov", "77516", "", "<=50K"));
  EXPECT_THAT(Split(""), ElementsAre(""));
  EXPECT_THAT(Split(","), ElementsAre("", ""));
  EXPECT_THAT(Split("1\t\t68fd1e64", '\t'), ElementsAre("1", "", "68fd1e64"));
}

TEST(CsvTest, QuotedFieldsKeepDelimitersSpacesAndQuotes) {
  EXPECT_THAT(Split(R"("a, b" ,"", " x ","say ""no""",5" pipe)"),
              ElementsAre("a, b", "", " x ", "say \"no\"", "5\" pipe"));
}

TEST(CsvTest, RefusesBrokenQuotes) {
  CsvFields fields;
  EXPECT_THAT(base::Message(SplitCsv("1,\"open", ',', fields)), HasSubstr("has no closing quote"));
  EXPECT_THAT(base::Message(SplitCsv("1,\"a\"b,2", ',', fields)), HasSubstr("column 1 has text after"));
}

// With random bytes there is no crash and no read beyond the line (ASan), and fields without quotes survive a round
// trip.
TEST(CsvTest, AnyBytes) {
  base::Rng rng(11);
  constexpr std::string_view kAlphabet = "\",\t\r ;ab0.\\\xff";
  CsvFields fields;
  for (int i = 0; i < 20000; ++i) {
    std::string line;
    for (uint64_t n = rng.Below(24); n > 0; --n) line += kAlphabet[rng.Below(kAlphabet.size())];
    const absl::Status status = SplitCsv(line, ',', fields);
    if (line.find('"') == std::string::npos) {
      ASSERT_TRUE(status.ok()) << line;
      EXPECT_EQ(static_cast<int64_t>(fields.values.size()), 1 + std::count(line.begin(), line.end(), ','));
    }
  }
}

}  // namespace
}  // namespace medley::worker
