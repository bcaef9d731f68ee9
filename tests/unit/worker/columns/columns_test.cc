// Columns and the text of the same table give the same samples, whatever their types and values are.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "worker/columns/column_text.h"
#include "worker/columns/open_columns.h"
#include "worker/data/column_rows.h"
#include "worker/data/record.h"

namespace medley::worker {
namespace {

using testing::HasSubstr;

// A table in memory, as batches of columns.
class FakeColumns final : public ColumnFile {
 public:
  struct Column {
    ColumnKind kind = ColumnKind::kText;
    std::vector<double> reals;
    std::vector<int64_t> wholes;
    std::vector<uint8_t> present;
    std::vector<std::string> texts;
    std::vector<int32_t> codes;
    std::vector<std::string_view> views = {};
  };

  FakeColumns(std::vector<ColumnInfo> infos, std::vector<Column> columns, int64_t rows, int64_t batch)
      : infos_(std::move(infos)), columns_(std::move(columns)), rows_(rows), batch_rows_(batch) {}

  const std::vector<ColumnInfo>& columns() const override { return infos_; }
  int64_t rows() const override { return rows_; }
  int64_t bytes_read() const override { return at_; }
  std::string Begin(const std::vector<int>& columns) override {
    chosen_ = columns;
    at_ = 0;
    return "";
  }
  std::string Next(ColumnBatch& batch) override {
    batch.first_row = at_;
    batch.rows = std::min(batch_rows_, rows_ - at_);
    batch.columns.clear();
    for (const int index : chosen_) {
      Column& column = columns_[static_cast<size_t>(index)];
      column.views.assign(column.texts.begin(), column.texts.end());
      ColumnValues& values = batch.columns.emplace_back();
      values.kind = column.kind;
      if (!column.reals.empty()) values.reals = column.reals.data() + at_;
      if (!column.wholes.empty()) values.wholes = column.wholes.data() + at_;
      if (!column.present.empty()) values.present = column.present.data() + at_;
      values.texts = column.views.data() + (column.codes.empty() ? at_ : 0);
      if (column.codes.empty()) continue;
      values.codes = column.codes.data() + at_;
      values.different = std::ssize(column.texts);
    }
    at_ += batch.rows;
    return "";
  }

 private:
  std::vector<ColumnInfo> infos_;
  std::vector<Column> columns_;
  const int64_t rows_, batch_rows_;
  std::vector<int> chosen_;
  int64_t at_ = 0;
};

class RandomColumns {
 public:
  explicit RandomColumns(uint64_t seed) : rng_(seed) {}

  std::unique_ptr<FakeColumns> Make(size_t columns, int64_t rows, bool bad) {
    std::vector<ColumnInfo> infos;
    std::vector<FakeColumns::Column> made;
    for (size_t c = 0; c < columns; ++c) {
      infos.push_back({"c" + std::to_string(c), "type"});
      made.push_back(c == 0 ? Label(rows) : Any(rows, bad));
    }
    return std::make_unique<FakeColumns>(std::move(infos), std::move(made), rows, 100);
  }

 private:
  FakeColumns::Column Label(int64_t rows) {
    FakeColumns::Column column{.kind = ColumnKind::kWhole};
    for (int64_t i = 0; i < rows; ++i) column.wholes.push_back(static_cast<int64_t>(rng_.Below(2)));
    return column;
  }

  FakeColumns::Column Any(int64_t rows, bool bad) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    static const std::vector<std::string> kTexts = {"",   "1",   "-2.5",  "1,234", " 7 ",
                                                    "NA", "3\n", "\"4\"", "1e3",   "0x1"};
    const std::vector<double> reals = {0, -0.0, 0.1, 1e300, 5e-324, std::nan(""), -999, 1.0 / 3, bad ? kInfinity : 2};
    FakeColumns::Column column;
    switch (rng_.Below(4)) {
      case 0:
        column.kind = ColumnKind::kReal;
        for (int64_t i = 0; i < rows; ++i) column.reals.push_back(reals[rng_.Below(reals.size())]);
        break;
      case 1:
        column.kind = ColumnKind::kWhole;
        for (int64_t i = 0; i < rows; ++i) {
          column.wholes.push_back(rng_.Below(4) == 0 ? std::numeric_limits<int64_t>::max()
                                                     : static_cast<int64_t>(rng_.Below(50)));
          column.present.push_back(rng_.Below(9) != 0);
        }
        break;
      case 2:
        for (int64_t i = 0; i < rows; ++i) column.texts.push_back(kTexts[rng_.Below(kTexts.size() - (bad ? 0 : 3))]);
        break;
      default:
        column.texts = {kTexts.begin(), kTexts.end() - (bad ? 0 : 3)};
        for (int64_t i = 0; i < rows; ++i) {
          column.codes.push_back(static_cast<int32_t>(rng_.Below(column.texts.size() + 1)) - 1);
        }
    }
    return column;
  }

  base::Rng rng_;
};

bool Same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

TEST(ColumnsTest, GiveTheSamplesOfTheirText) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const auto make = [&] { return RandomColumns(seed).Make(7, 350, seed % 3 == 0); };
    model::SchemaSpec schema;
    schema.label_column = 0;
    schema.numeric = {1, 2, 3};
    schema.categorical = {3, 4, 5};
    if (seed % 5 == 0) schema.weight_column = 6;
    if (seed % 7 == 0) schema.missing = {"-999", "0x1"};
    if (seed % 11 == 0) schema.numeric_buckets = 8;

    ParsedRows by_columns;
    std::vector<int64_t> bad_columns;
    const auto file = make();
    ASSERT_EQ(file->Begin(ColumnsRead(schema)), "");
    ColumnRows columns(schema, 1000, {});
    ColumnBatch batch;
    while (file->Next(batch).empty() && batch.rows > 0) {
      for (int64_t begin = 0; begin < batch.rows; begin += 40) {
        columns.Append(batch, begin, std::min(batch.rows, begin + 40), by_columns,
                       [&](int64_t row, const absl::Status&) { bad_columns.push_back(batch.first_row + row); });
      }
    }

    ColumnText writer(make(), "x.parquet", ',', false);
    std::string text;
    for (size_t size = 1; size != text.size();) {
      size = text.size();
      ASSERT_THAT(writer.Append(text), base::IsOk());
    }
    ParsedRows by_text;
    std::vector<int64_t> bad_text;
    RowParser parser(schema, ',', 1000, {}, 7);
    std::string_view rest = text;
    for (int64_t row = 0; const auto record = TakeRecord(rest, ',', true); ++row) {
      if (!parser.Append(record->text, by_text).ok()) bad_text.push_back(row);
    }
    ASSERT_EQ(by_columns.samples, by_text.samples) << "seed " << seed;
    EXPECT_EQ(by_columns.samples + std::ssize(bad_columns), 350);
    EXPECT_EQ(bad_columns, bad_text) << "seed " << seed;
    EXPECT_EQ(by_columns.ids, by_text.ids) << "seed " << seed;
    EXPECT_TRUE(Same(by_columns.numerics, by_text.numerics)) << "seed " << seed;
    EXPECT_EQ(by_columns.labels, by_text.labels);
    EXPECT_EQ(by_columns.weights, by_text.weights);
  }
}

TEST(ColumnsTest, TextsWithDelimitersQuotesAndLineBreaksAreQuoted) {
  const auto field = [](std::string_view value) {
    std::string text;
    AppendField(value, ',', text);
    return text;
  };
  EXPECT_EQ(field("plain text"), "plain text");
  EXPECT_EQ(field(""), "");
  EXPECT_EQ(field("a,b"), "\"a,b\"");
  EXPECT_EQ(field("5\" pipe"), "\"5\"\" pipe\"");
  EXPECT_EQ(field(" a"), "\" a\"");
  EXPECT_EQ(field("a\nb"), "\"a\nb\"");
}

TEST(ColumnsTest, WritesOneMissingValueInQuotes) {
  std::vector<FakeColumns::Column> columns(1);
  columns[0].texts = {"a", "", "b"};
  ColumnText text(std::make_unique<FakeColumns>(std::vector<ColumnInfo>{{"only, column", "string"}}, columns, 3, 2),
                  "x", ',', true);
  std::string all;
  for (int i = 0; i < 4; ++i) ASSERT_THAT(text.Append(all), base::IsOk());
  EXPECT_EQ(all, "\"only, column\"\na\n\"\"\nb\n");
}

TEST(ColumnsTest, AColumnOfATypeThatTablesDoNotHaveIsNamed) {
  const FakeColumns file({{"age", "int64"}, {"tags", "list<item: string>", false}}, {}, 0, 1);
  EXPECT_THAT(base::Message(CheckColumns(file, "x.parquet")),
              HasSubstr("x.parquet: the column 'tags' has the type list<item: string>, but tables have"));
  EXPECT_THAT(base::Message(CheckColumns(FakeColumns({}, {}, 0, 1), "x")), HasSubstr("x: the file has no columns"));
}

TEST(ColumnsTest, FilesAreKnownByTheirFirstBytes) {
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(ColumnFormatOf("PAR1\x15\0\x15"sv), ColumnFormat::kParquet);
  EXPECT_EQ(ColumnFormatOf("PAR1,PAR2\n1,2\n"), ColumnFormat::kNone) << "a table whose columns have these names";
  EXPECT_EQ(ColumnFormatOf("ARROW1\0\0"sv), ColumnFormat::kArrow);
  EXPECT_EQ(ColumnFormatOf("\xff\xff\xff\xff\x10\x01\0\0"sv), ColumnFormat::kArrow) << "a stream";
  EXPECT_EQ(ColumnFormatOf("\xff\xff\xff\xff"sv), ColumnFormat::kNone);
  EXPECT_EQ(ColumnFormatOf(""), ColumnFormat::kNone);
}

}  // namespace
}  // namespace medley::worker
