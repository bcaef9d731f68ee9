// RowReader divides text as TakeRecord and SplitCsv do, which it is faster than.
#include "worker/data/row_reader.h"

#include <gmock/gmock.h>

#include "common/base/rng.h"
#include "worker/data/record.h"

namespace medley::worker {
namespace {

struct DividedText {
  std::vector<std::vector<std::string>> rows;
  std::vector<int64_t> lines;
  bool operator==(const DividedText&) const = default;
};

DividedText DividedFast(std::string_view text, char delimiter) {
  DividedText read;
  RowReader reader(text, delimiter, 0);
  CsvFields fields;
  TextRow row;
  while (reader.Next(fields, row)) {
    read.lines.push_back(row.lines);
    auto& values = read.rows.emplace_back();
    if (row.blank) continue;
    values.assign(row.status.ok() ? 1 : 0, "row");
    if (row.status.ok()) values.insert(values.end(), fields.values.begin(), fields.values.end());
  }
  return read;
}

DividedText DividedPlainly(std::string_view text, char delimiter) {
  DividedText read;
  CsvFields fields;
  while (const auto record = TakeRecord(text, delimiter, true)) {
    read.lines.push_back(record->lines);
    auto& values = read.rows.emplace_back();
    if (IsBlankRow(record->text, delimiter)) continue;
    const bool ok = SplitCsv(record->text, delimiter, fields).ok();
    values.assign(ok ? 1 : 0, "row");
    if (ok) values.insert(values.end(), fields.values.begin(), fields.values.end());
  }
  return read;
}

TEST(RowReaderTest, DividesAnyTextAsTheRecordsDo) {
  constexpr std::string_view kCharacters = ",,,,,\n\n\"\t \r7abc;\xc3";
  base::Rng rng(47);
  for (int round = 0; round < 20'000; ++round) {
    // Few quotes in some texts, many in others, and lengths around those of the blocks that are looked at at once.
    std::string text;
    const uint64_t length = rng.Below(300), quotes = 1 + rng.Below(40);
    for (uint64_t i = 0; i < length; ++i) {
      const char c = kCharacters[rng.Below(kCharacters.size())];
      text += c == '"' && rng.Below(quotes) != 0 ? 'q' : c;
    }
    for (const char delimiter : {',', '\t'}) {
      ASSERT_EQ(DividedFast(text, delimiter), DividedPlainly(text, delimiter))
          << "round " << round << ": " << testing::PrintToString(text);
    }
  }
}

TEST(RowReaderTest, FieldsMayEndAnywhereInABlock) {
  for (size_t first = 0; first < 200; ++first) {
    const std::string text = std::string(first, 'a') + "," + std::string(64, 'b') + "\n,\nx";
    const DividedText read = DividedFast(text, ',');
    ASSERT_EQ(read.rows.size(), 3u);
    EXPECT_THAT(read.rows[0], testing::ElementsAre("row", std::string(first, 'a'), std::string(64, 'b')));
    EXPECT_THAT(read.rows[1], testing::ElementsAre("row", "", ""));
    EXPECT_THAT(read.rows[2], testing::ElementsAre("row", "x"));
  }
}

}  // namespace
}  // namespace medley::worker
