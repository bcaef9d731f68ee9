#include "worker/data/number.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "worker/data/date.h"
#include "worker/data/label_reader.h"

namespace medley::worker {
namespace {

using model::ColumnPart;

double Number(std::string_view text, const ValueReader& reader = ValueReader()) {
  const Value value = reader.Read(text);
  EXPECT_EQ(value.kind, ValueKind::kNumber) << text;
  return value.number;
}

ValueKind KindOf(std::string_view text, const std::vector<std::string>& missing = {}) {
  const Value value = ValueReader(missing).Read(text);
  EXPECT_EQ(value.kind == ValueKind::kMissing, std::isnan(value.number)) << text;
  return value.kind;
}

TEST(NumberTest, ReadsDecimalNumbersWithSigns) {
  EXPECT_EQ(Number("12"), 12);
  EXPECT_EQ(Number("+1"), 1);
  EXPECT_EQ(Number("-1.5e3"), -1500);
  EXPECT_EQ(Number(".5"), 0.5);
  EXPECT_EQ(Number("5."), 5);
  EXPECT_EQ(Number(" 7\t"), 7) << "as a quoted field may have it";
  EXPECT_EQ(Number("\xc2\xa0"
                   "7"),
            7);
  EXPECT_EQ(Number("\xe2\x88\x92"
                   "3"),
            -3)
      << "the minus sign of Unicode";
  EXPECT_EQ(Number("1700000001"), 1700000001) << "float32 has 1700000000";
}

TEST(NumberTest, ReadsCommasBetweenThousands) {
  EXPECT_EQ(Number("1,234.5"), 1234.5);
  EXPECT_EQ(Number("-1,234,567"), -1234567);
  EXPECT_EQ(Number("+12,345"), 12345);
  EXPECT_EQ(Number(" 999,999,999.25 "), 999999999.25);
  for (const char* other : {"1,5", "12,34", "0,125", "1,234,5", "1234,567", ",123", "1,,234", "1,234e3", "1,234.5.6",
                            "1,234,", "1,23a", "--1,234", "+-1,234", "1,234.-5", "1.234,5"}) {
    EXPECT_EQ(KindOf(other), ValueKind::kText) << other;
  }
  EXPECT_EQ(KindOf("9,999", {"9999"}), ValueKind::kMissing);
  EXPECT_EQ(KindOf("9999", {"9,999"}), ValueKind::kMissing);
}

// The fast way of short numbers rounds as that of all others does.
TEST(NumberTest, ShortNumbersAreRoundedAsLongOnes) {
  base::Rng rng(7);
  constexpr std::string_view kAlphabet = "0123456789012345678901234567890123456789.-";
  int numbers = 0;
  for (int i = 0; i < 100000; ++i) {
    std::string text;
    for (uint64_t n = 1 + rng.Below(18); n > 0; --n) text += kAlphabet[rng.Below(kAlphabet.size())];
    double expected = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), expected);
    const Value value = ValueReader().Read(text);
    const bool number = error == std::errc() && end == text.data() + text.size();
    ASSERT_EQ(value.kind == ValueKind::kNumber, number) << text;
    if (!number) continue;
    ++numbers;
    ASSERT_EQ(value.number, expected) << text;
    ASSERT_EQ(std::signbit(value.number), std::signbit(expected)) << text;
  }
  EXPECT_GT(numbers, 10000);
}

TEST(NumberTest, NumbersOfAnySize) {
  EXPECT_EQ(Number("1e-300"), 1e-300);
  EXPECT_EQ(Number("1e39"), 1e39) << "beyond float32";
  EXPECT_EQ(Number("1e-400"), 0);
  EXPECT_EQ(Number("0." + std::string(400, '0') + "1"), 0);
  for (const char* text : {"inf", "-inf", "Infinity", "1e400", "-1e400"}) {
    EXPECT_EQ(KindOf(text), ValueKind::kText) << text;
  }
  EXPECT_EQ(KindOf(std::string(400, '9')), ValueKind::kText);
}

TEST(NumberTest, MissingValuesAreThoseOfPandas) {
  for (const char* text :
       {"",     " ",    "nan",  "NaN", "-nan",     "-NaN", "N/A",    "n/a",      "NA", "na", "null",
        "NULL", "None", "#N/A", "#NA", "#N/A N/A", "<NA>", "1.#IND", "-1.#QNAN", "-",  "?",  " NA "}) {
    EXPECT_EQ(KindOf(text), ValueKind::kMissing) << text;
  }
  for (const char* text : {"x", "nanny", "+", "+-1", "-+1", "--1", "1,5", "1 2", "0x10", "1e", "nan(1)", "\xff"}) {
    EXPECT_EQ(KindOf(text), ValueKind::kText) << text;
  }
  double number = 0;
  EXPECT_EQ(base::Message(ValueReader().ReadNumber("x\n", 3, number)), "column 3: 'x\\x0a' is not a number");
}

TEST(NumberTest, TheSchemaNamesMoreMissingValues) {
  const std::vector<std::string> missing = {"unknown", "-999", "inf"};
  for (const char* text : {"unknown", "-999", "-999.0", "inf", " unknown "}) {
    EXPECT_EQ(KindOf(text, missing), ValueKind::kMissing) << text;
  }
  EXPECT_EQ(KindOf("Unknown", missing), ValueKind::kText) << "as it is written";
  EXPECT_EQ(Number("999", ValueReader(missing)), 999);
}

TEST(NumberTest, LabelsAreComparedAsNumbers) {
  for (const char* text : {"1", "1.0", "1.", "+1", "1e0"}) EXPECT_EQ(IsOne(text, ""), true) << text;
  for (const char* text : {"0", "0.0", "-0", "0."}) EXPECT_EQ(IsOne(text, ""), false) << text;
  for (const char* text : {"", ".", "2", "yes", "nan"}) EXPECT_EQ(IsOne(text, ""), std::nullopt) << text;
  EXPECT_EQ(IsOne("2.0", "2"), true);
  EXPECT_EQ(IsOne("1", "2"), false);
  EXPECT_EQ(IsOne(">50K.", ">50K"), true);
  EXPECT_EQ(IsOne("NA", "NA"), true);
  EXPECT_EQ(IsOne("NA", "yes"), false);
}

TEST(DateTest, ReadsTheUsualForms) {
  for (const char* text :
       {"2024-01-31", "2024/1/31", "20240131", "31.1.2024", "31.01.24", "31 Jan 2024", "31-Jan-2024", "31-jan-24",
        "Jan 31, 2024", "January 31 2024", "Wed, 31 Jan 2024", "1/31/2024", "01-31-2024", "2024-01-31T00:00:00Z",
        "2024-01-31 02:00+02:00", "1/31/2024 12:00 AM", "2024-01-31 00:00:00.000"}) {
    const auto date = ParseDate(text, false);
    ASSERT_TRUE(date.has_value()) << text;
    EXPECT_EQ(date->seconds, 1706659200) << text;
    EXPECT_EQ(date->Part(ColumnPart::kYear), 2024) << text;
    EXPECT_EQ(date->Part(ColumnPart::kMonth), 1) << text;
    EXPECT_EQ(date->Part(ColumnPart::kWeekday), 2) << text;
  }
  EXPECT_EQ(ParseDate("31/1/2024", true)->seconds, 1706659200);
  EXPECT_EQ(ParseDate("2024-01-31 13:45:30.5", false)->seconds, 1706659200 + 13 * 3600 + 45 * 60 + 30.5);
  EXPECT_EQ(ParseDate("1/31/2024 1:45 pm", false)->hour, 13);
  EXPECT_EQ(ParseDate("2024-01-31 23:00-05:00", false)->hour, 23) << "as it is written";
  EXPECT_EQ(ParseDate("13:45", false)->seconds, 13 * 3600 + 45 * 60);
}

TEST(DateTest, RefusesInvalidDates) {
  for (const char* text : {"", "x", "2024", "12", "2024-13-01", "2023-02-29", "31/1/2024", "1/2", "1.5", "2024-01-31x",
                           "2024-01-31 25:00", "2024-01-31 1", "99999999", "1-2-3-4", "Jan", "-5", "12:60", "\xff"}) {
    EXPECT_EQ(ParseDate(text, false), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace medley::worker
