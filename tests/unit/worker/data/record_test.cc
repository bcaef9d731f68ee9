#include "worker/data/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/rng.h"
#include "worker/data/csv.h"

namespace medley::worker {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Records(std::string_view text, char delimiter = ',') {
  std::vector<std::string> records;
  while (const auto record = TakeRecord(text, delimiter, true)) records.emplace_back(record->text);
  EXPECT_EQ(text, "");
  return records;
}

TEST(RecordTest, ALineBreakInQuotesIsPartOfTheField) {
  EXPECT_THAT(Records("a,b\nc\n"), ElementsAre("a,b", "c"));
  EXPECT_THAT(Records("1,\"a\nb\",2\n3,c,4"), ElementsAre("1,\"a\nb\",2", "3,c,4"));
  EXPECT_THAT(Records("\"a\r\n\r\nb\"\r\n\"c\""), ElementsAre("\"a\r\n\r\nb\"\r", "\"c\""));
  EXPECT_THAT(Records("1, \"say \"\"hi\"\"\n\"\"\" ,2\n3,x,4\n"),
              ElementsAre("1, \"say \"\"hi\"\"\n\"\"\" ,2", "3,x,4"));
  EXPECT_THAT(Records("1\t\"a\nb\"\n", '\t'), ElementsAre("1\t\"a\nb\""));
  EXPECT_THAT(Records("\"a\n\",\"\nb\"\nc"), ElementsAre("\"a\n\",\"\nb\"", "c")) << "two fields of one row";
}

TEST(RecordTest, AQuoteInsideAFieldIsText) {
  EXPECT_THAT(Records("5\" pipe,1\n6\" pipe,2\n"), ElementsAre("5\" pipe,1", "6\" pipe,2"));
}

// Otherwise one stray quote would swallow the rows up to the next one.
TEST(RecordTest, AQuoteThatIsNotClosedSpoilsItsLineOnly) {
  EXPECT_THAT(Records("1,\"open,2\n3,a,4\n5,b,6\n"), ElementsAre("1,\"open,2", "3,a,4", "5,b,6"));
  EXPECT_THAT(Records("1,\"open,2\n3,a,4\n5,\"Smith, J\",6\n"), ElementsAre("1,\"open,2", "3,a,4", "5,\"Smith, J\",6"));
  EXPECT_THAT(Records("1,\"a\"b,2\n3,c,4\n"), ElementsAre("1,\"a\"b,2", "3,c,4"));
  std::string text = "1,\"open\n";
  while (text.size() < kLongestQuote + 100) text += "2,b\n";
  text += "3,\"\n";
  EXPECT_EQ(Records(text).front(), "1,\"open") << "the closing quote is too far away";
}

TEST(RecordTest, ThePiecesOfAStreamMakeTheSameRecords) {
  base::Rng rng(5);
  constexpr std::string_view kAlphabet = "\"\"\",,\n\r ab";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (uint64_t n = 1 + rng.Below(30); n > 0; --n) text += kAlphabet[rng.Below(kAlphabet.size())];
    const std::vector<std::string> whole = Records(text);
    std::vector<std::string> streamed;
    std::string_view rest = std::string_view(text).substr(0, 0);
    for (size_t end = 0; end <= text.size(); ++end) {
      rest = std::string_view(rest.data(), static_cast<size_t>(text.data() + end - rest.data()));
      while (const auto record = TakeRecord(rest, ',', end == text.size())) streamed.emplace_back(record->text);
    }
    ASSERT_EQ(whole, streamed) << text;
    std::vector<std::string> cut;
    for (std::string_view pieces = text; !pieces.empty();) {
      std::string_view piece = TakePiece(pieces, ',', 1 + rng.Below(8));
      while (const auto record = TakeRecord(piece, ',', true)) cut.emplace_back(record->text);
    }
    ASSERT_EQ(whole, cut) << text;
  }
}

TEST(RecordTest, CountsTheFieldsOfMostRows) {
  EXPECT_EQ(FieldsOfMost("a,b\n1,2,3\n4,5,6\n", ',', 1), 3u);
  EXPECT_EQ(FieldsOfMost("a,b,c\n1,2\n", ',', 1), 3u) << "of two, the first";
  EXPECT_EQ(FieldsOfMost("bad\nworse\nx\n1,2\n", ',', 2), 2u) << "rows that are too short do not count";
  EXPECT_EQ(FieldsOfMost("", ',', 4), 4u);
  EXPECT_FALSE(HasEnoughRows("a\nb\n", ','));
}

}  // namespace
}  // namespace medley::worker
