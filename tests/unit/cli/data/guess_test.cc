#include "cli/data/guess.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/data/head_view.h"
#include "cli/data/label_guess.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"

namespace medley::cli {
namespace {

using testing::HasSubstr;

TableGuess Guess(const std::string& text) {
  const auto sample = ParseSample("x.csv", text, static_cast<int64_t>(text.size()));
  EXPECT_THAT(sample, base::IsOk());
  return GuessTable(*sample);
}

TEST(GuessTest, TheHeader) {
  EXPECT_TRUE(Guess("age,country\n3,DE\n4,FR\n").header);
  EXPECT_TRUE(Guess("color,country\nred,DE\nblue,FR\n").header);
  EXPECT_TRUE(Guess(",age\n0,3\n1,4\n").header) << "the first column of pandas has no name";
  EXPECT_FALSE(Guess("red,DE\nblue,FR\nred,IT\n").header) << "the first row occurs again";
  EXPECT_FALSE(Guess("3,DE\n4,FR\n").header);
  EXPECT_TRUE(Guess("age,\n3,DE\n").header) << "a column may have no name";
  EXPECT_FALSE(Guess("DE,\nFR,3\nDE,4\n").header) << "a row without a number";
}

TEST(GuessTest, TheTypes) {
  std::string text = "id,age,city,code,one,text\n";
  for (int i = 0; i < 50; ++i) {
    text += fmt::format("{},{},{},{},x,comment {}\n", i + 7, i % 3 == 0 ? "?" : std::to_string(i * 1.5),
                        i % 2 == 0 ? "Paris" : "Rome", i % 5 == 0 ? "A1" : "17", i);
  }
  const TableGuess table = Guess(text);
  EXPECT_EQ(table.columns[0].type, ColumnType::kIdentifier) << "counts the rows";
  EXPECT_EQ(table.columns[1].type, ColumnType::kNumeric);
  EXPECT_EQ(table.columns[1].missing, 17);
  EXPECT_EQ(table.columns[2].type, ColumnType::kCategorical);
  EXPECT_EQ(table.columns[3].type, ColumnType::kCategorical);
  EXPECT_EQ(table.columns[4].type, ColumnType::kConstant);
  EXPECT_EQ(table.columns[5].type, ColumnType::kIdentifier) << "differs in every row";
}

// The column of 3,000 rows whose i-th value is value(i).
template <typename F>
ColumnGuess Column(const F& value, const std::string& name = "x", int rows = 3000) {
  std::string text = name + ",other\n";
  for (int i = 0; i < rows; ++i) text += fmt::format("{},{}\n", value(i), i % 7);
  return Guess(text).columns[0];
}

// Issue 45: numbers with commas between thousands are numbers, and other ways to write them are named.
TEST(GuessTest, FormsOfNumbersAreReadOrNamed) {
  const auto said = [](const ColumnGuess& column) {
    std::string all;
    for (const std::string& sentence : column.because) all += sentence + "\n";
    return all;
  };
  const ColumnGuess grouped = Column([](int i) { return fmt::format("\"{},{:03}.5\"", 1 + i % 97, i % 1000); });
  EXPECT_EQ(grouped.type, ColumnType::kNumeric);
  EXPECT_EQ(grouped.missing, 0);
  EXPECT_THAT(said(grouped), HasSubstr("has commas between thousands: '1,000.5' is read as 1000.5"));
  const struct {
    const char* form;
    const char* example;
  } kOthers[] = {{"\"{},{}\"", "'1,0'"}, {"${}.{}", "'$1.0'"}, {"{}.{} %", "'1.0 %'"}, {"{} {}00", "'1 000'"}};
  for (const auto& each : kOthers) {
    const ColumnGuess column = Column([&](int i) { return fmt::format(fmt::runtime(each.form), 1 + i % 97, i % 10); });
    EXPECT_THAT(said(column), HasSubstr("are numbers written in another form, as ")) << each.form;
    EXPECT_THAT(said(column), HasSubstr(each.example)) << said(column);
  }
  for (const char* name : {"10.0.{}.{}", "0170 {}{}", "a{}{}", "{}-{}"}) {
    const ColumnGuess column = Column([&](int i) { return fmt::format(fmt::runtime(name), i % 97, i % 10); });
    EXPECT_THAT(said(column), testing::Not(HasSubstr("another form"))) << name;
  }
}

// Issue 45: one nan in 3,000 numbers made them categories.
TEST(GuessTest, MostValuesDecide) {
  const auto number = [](int i) { return std::to_string(i * 37 % 3001 * 0.25); };
  for (const char* text : {"nan", "N/A", "unknown", "inf", "-", "#REF!"}) {
    const ColumnGuess one = Column([&](int i) { return i == 1234 ? text : number(i); });
    EXPECT_EQ(one.type, ColumnType::kNumeric) << text;
    EXPECT_EQ(one.missing, 1) << text;
    ASSERT_EQ(one.because.size(), 1U) << text;
    EXPECT_EQ(one.because[0], fmt::format("99.96 % of 'x' are numbers; '{}' (1 row) is taken as missing", text));
  }
  const ColumnGuess some = Column([&](int i) { return i % 50 == 0 ? "N/A" : i % 60 == 1 ? "n.a." : number(i); });
  EXPECT_EQ(some.type, ColumnType::kNumeric);
  EXPECT_THAT(some.missing_texts, testing::ElementsAre("n.a."));
  EXPECT_THAT(some.because[0], HasSubstr("'N/A' (60 rows), 'n.a.' (50 rows) are taken as missing"));
  const ColumnGuess junk = Column([&](int i) { return i % 125 == 0 ? fmt::format("junk{}", i) : number(i); });
  EXPECT_EQ(junk.type, ColumnType::kNumeric);
  EXPECT_EQ(junk.unreadable, 24 - 16) << "which maxBadRows allows";
  EXPECT_EQ(Column([&](int i) { return i % 3 == 0 ? "red" : number(i); }).type, ColumnType::kCategorical);
  EXPECT_EQ(Column([&](int i) { return i % 20 == 0 ? "3+" : std::to_string(i % 3); }).type, ColumnType::kCategorical)
      << "few numbers are as good as categories";
}

TEST(GuessTest, WholeNumbersThatAreNamesAreCategories) {
  const auto type = [](const auto& value, const std::string& name = "x") { return Column(value, name).type; };
  EXPECT_EQ(type([](int i) { return fmt::format("123456789012345678{:02}", i % 90); }), ColumnType::kCategorical);
  EXPECT_EQ(type([](int i) { return fmt::format("1234567890123456{:04}", i); }), ColumnType::kIdentifier);
  EXPECT_EQ(type([](int i) { return fmt::format("{:05}", i * 31 % 2000); }), ColumnType::kCategorical)
      << "postal codes";
  EXPECT_EQ(type([](int i) { return std::to_string(i * 7 % 500); }, "user_id"), ColumnType::kCategorical);
  EXPECT_EQ(type([](int i) { return std::to_string(i * 7 % 500); }, "userId"), ColumnType::kCategorical);
  EXPECT_EQ(type([](int i) { return std::to_string(i * 7 % 500); }, "humid"), ColumnType::kNumeric);
  EXPECT_EQ(type([](int i) { return std::to_string(1700000000 + i * 7919L % 10000019); }), ColumnType::kNumeric)
      << "seconds since 1970";
  EXPECT_EQ(type([](int i) { return std::to_string(i % 2 * 4000000000L + i % 50); }), ColumnType::kCategorical)
      << "which float32 cannot tell apart";
}

TEST(GuessTest, DatesAreFoundWithTheirOrder) {
  const ColumnGuess iso = Column([](int i) { return fmt::format("2024-{:02}-{:02}", 1 + i % 12, 1 + i % 28); });
  EXPECT_EQ(iso.type, ColumnType::kDate);
  const ColumnGuess day = Column([](int i) { return fmt::format("{}/{}/2024", 1 + i % 28, 1 + i % 12); });
  EXPECT_EQ(day.type, ColumnType::kDate);
  EXPECT_TRUE(day.day_first);
  const ColumnGuess month = Column([](int i) { return fmt::format("{}/{}/2024 10:30", 1 + i % 12, 1 + i % 28); });
  EXPECT_EQ(month.type, ColumnType::kDate);
  EXPECT_FALSE(month.day_first);
  EXPECT_EQ(Column([](int i) { return fmt::format("202401{:02}", 1 + i % 28); }).type, ColumnType::kDate);
  EXPECT_EQ(Column([](int i) { return std::to_string(20000000 + i * 31 % 3000); }).type, ColumnType::kNumeric);
}

TEST(GuessTest, TheUserDecides) {
  const auto sample = ParseSample("x.csv", "a,b\n1,x\n2,y\n3,z\n", 20);
  const TableGuess table = GuessTable(*sample, {{0, ColumnType::kCategorical}, {1, ColumnType::kNumeric}});
  EXPECT_EQ(table.columns[0].type, ColumnType::kCategorical);
  EXPECT_EQ(table.columns[1].type, ColumnType::kNumeric);
}

TEST(GuessTest, OnlyNamesThatAManifestCanHoldAreNames) {
  const TableGuess table = Guess(
      "\"a \"\"b\"\", c: #d\",twice,twice,bad\xff,,gr\xc3\xbc\xc3\x9f"
      "e\n1,2,3,4,5,6\n2,3,4,5,6,7\n");
  ASSERT_TRUE(table.header) << "although the fifth name is empty";
  EXPECT_FALSE(table.columns[4].named);
  const TableGuess named = Guess(
      "\"a \"\"b\"\", c: #d\",twice,twice,bad\xff,gr\xc3\xbc\xc3\x9f"
      "e\n1,2,3,4,5\n2,3,4,5,6\n");
  ASSERT_TRUE(named.header);
  EXPECT_EQ(named.columns[0].name, "a \"b\", c: #d");
  const bool expected[] = {true, false, false, false, true};
  for (size_t c = 0; c < 5; ++c) EXPECT_EQ(named.columns[c].named, expected[c]) << c;
}

TEST(LabelGuessTest, IsFoundByNameByPlaceOrAsked) {
  const auto label = [](const std::string& text, const std::string& wanted = "") {
    return GuessLabel("x.csv", Guess(text), wanted);
  };
  EXPECT_EQ(label("Target,a,b\n1,x,2\n0,y,3\n0,y,4\n")->column, 0u);
  EXPECT_EQ(label("a,b,c\nx,2,no\ny,3,yes\ny,4,no\n")->column, 2u);
  EXPECT_EQ(label("c,b,a\nno,2,7\nyes,3,8\nno,4,9\n")->column, 0u) << "the only column with two values";
  EXPECT_EQ(label("a,b,c\nx,2,no\ny,3,yes\ny,4,no\n", "a")->column, 0u);
  EXPECT_EQ(label("1,2,0\n2,2,1\n3,2,1\n", "2")->column, 2u);
  const auto error = [&](const std::string& text, const std::string& wanted) {
    return base::Message(label(text, wanted).status());
  };
  EXPECT_THAT(error("a,b,c,d\n1,1,1,1\n0,0,0,2\n1,0,1,3\n", ""),
              HasSubstr("the label cannot be guessed (columns with two values: 'a', 'b', 'c'): name its column with"));
  EXPECT_THAT(error("age,c\n1,x\n2,y\n3,x\n", "agee"), HasSubstr("there is no column 'agee'; did you mean `age`?"));
  EXPECT_THAT(error("1,0\n2,1\n3,0\n", "7"),
              HasSubstr("no column '7'; the file has no header, and columns from 0 to 1"));
  EXPECT_THAT(error("age,c\n1,x\n2,y\n3,z\n", "c"), HasSubstr("has 3 different values, as \"x\", \"y\", \"z\""));
  EXPECT_THAT(error("label\n1\n0\n", ""), HasSubstr("the file has one column"));
}

TEST(LabelGuessTest, ThePositiveValue) {
  const auto label = [](const std::string& values) { return *GuessLabel("x.csv", Guess(values), "label"); };
  EXPECT_EQ(label("label,n\n1,1\n0,2\n0,3\n").positive, "") << "0 and 1 need no words";
  EXPECT_EQ(label("label,n\nYes,1\nNo,2\nYes,3\n").positive, "Yes");
  EXPECT_EQ(label("label,n\nham,1\nspam,2\nham,3\n").positive, "spam") << "the rarer one";
  EXPECT_EQ(label("label,n\n>50K.,1\n<=50K.,2\n<=50K,3\n").positive, ">50K") << "as it is compared";
  EXPECT_EQ(label("label,n\nham,1\nspam,2\n,3\n").missing, 1);
  EXPECT_THAT(base::Message(GuessLabel("x.csv", Guess("label,n\nham,1\nspam,2\nNA,3\n"), "label").status()),
              HasSubstr("is NA in some rows, which would count as"));
}

// Issue 45: 1.0 and 0.0 were inverted when 0.0 was rarer, and the class NA was lost.
TEST(LabelGuessTest, NumbersAreComparedByValueAndNaIsAClass) {
  const auto label = [](const std::string& values) { return *GuessLabel("x.csv", Guess(values), "label"); };
  EXPECT_EQ(label("label,n\n1.0,1\n0.0,2\n1.0,3\n").positive, "");
  EXPECT_EQ(label("label,n\n1.0,1\n0.0,2\n1.0,3\n").positives, 2);
  EXPECT_EQ(label("label,n\n1,1\n0.0,2\n1.0,3\nnan,4\n").missing, 1);
  EXPECT_EQ(label("label,n\n-1,1\n1,2\n1,3\n").positive, "1") << "the larger number";
  const LabelGuess word = label("label,n\nNA,1\nyes,2\nNA,3\n");
  EXPECT_EQ(word.positive, "yes");
  EXPECT_THAT(word.because, testing::ElementsAre("the label 'NA' (2 rows) is a class, not a missing value"));
  EXPECT_EQ(label("label,n\nNA,1\nEU,2\nAS,3\nAF,7\nNA,4\nEU,5\nAS,6\nAF,7\n").classes.at("NA"), 2);
}

TEST(LabelGuessTest, NaBesideTwoClassesIsAClassWhenItIsAsFrequent) {
  const auto labels = [](const char* a, const char* b) {
    std::string text = "n,label\n";
    for (int i = 0; i < 60; ++i) text += fmt::format("{},{}\n", i, i % 3 == 0 ? "NA" : i % 3 == 1 ? a : b);
    return GuessLabel("x.csv", Guess(text), "label");
  };
  ASSERT_THAT(labels("EU", "AS"), base::IsOk());
  EXPECT_EQ(labels("EU", "AS")->classes.at("NA"), 20);
  EXPECT_THAT(base::Message(labels("yes", "no").status()), HasSubstr("is NA in some rows, which would count as no"));
}

TEST(LabelGuessTest, SeveralLabelsAndTheTaskCanBeNamed) {
  const TableGuess table = Guess("n,label_a,label_b\n1,1,0\n2,0,1\n3,1,1\n1,0,0\n2,0,0\n3,1,1\n");
  const auto several = GuessLabel("x.csv", table, "");
  ASSERT_THAT(several, base::IsOk());
  EXPECT_EQ(several->task, model::Task::kMultiLabel);
  EXPECT_THAT(several->columns, testing::ElementsAre(1, 2));
  EXPECT_EQ(GuessLabel("x.csv", table, "label_a")->task, model::Task::kBinary);
  EXPECT_THAT(GuessLabel("x.csv", table, "label_b, label_a")->columns, testing::ElementsAre(2, 1));
  EXPECT_EQ(GuessLabel("x.csv", table, "n")->task, model::Task::kMultiClass);
  EXPECT_EQ(GuessLabel("x.csv", table, "n", model::Task::kRegression)->task, model::Task::kRegression);
  EXPECT_THAT(base::Message(GuessLabel("x.csv", table, "n", model::Task::kBinary).status()),
              HasSubstr("has 3 different values, as \"1\", \"2\", \"3\": a binary task needs two"));
  EXPECT_THAT(base::Message(GuessLabel("x.csv", table, "label_a,n").status()),
              HasSubstr("several labels hold 0 and 1"));
}

TEST(LabelGuessTest, ColumnsThatTellTheLabelAreNamed) {
  std::string text = "x,sum,copy,target,label\n";
  for (int i = 0; i < 60; ++i) {
    text +=
        fmt::format("{},{},{},{},{}\n", i * 17 % 60, i < 30 ? i : i + 50, i < 30 ? "lo" : "hi", i % 4, i < 30 ? 0 : 1);
  }
  const TableGuess table = Guess(text);
  const auto leaks = FindLeaks(table, *GuessLabel("x.csv", table, "label"));
  ASSERT_EQ(leaks.size(), 3U);
  EXPECT_THAT(leaks[0], HasSubstr("'sum' alone tells the label of every row"));
  EXPECT_THAT(leaks[1], HasSubstr("'copy' alone tells the label of every row"));
  EXPECT_THAT(leaks[2], HasSubstr("the name of 'target' is that of a label"));
}

TEST(LabelGuessTest, TheTask) {
  const auto task = [](const std::string& text) { return GuessLabel("x.csv", Guess(text), "label")->task; };
  EXPECT_EQ(task("label,n\n1,1\n0,2\n0,3\n"), model::Task::kBinary);
  EXPECT_EQ(task("label,n\n1.5,1\n7,2\n,3\n-3e4,4\n"), model::Task::kRegression);
  std::string stars = "label,n\n";
  std::string text = "label,n\n";
  std::string hours = "label,n\n";
  for (int i = 0; i < 60; ++i) {
    stars += fmt::format("{},{}\n", 1 + i % 5, i);
    text += fmt::format("class {},{}\n", i % 30, i);
    hours += fmt::format("{},{}\n", i % 30, i);
  }
  EXPECT_EQ(task(stars), model::Task::kMultiClass) << "few numbers, each in many rows";
  EXPECT_EQ(task(text), model::Task::kMultiClass);
  EXPECT_EQ(task(hours), model::Task::kRegression);
}

TEST(LabelGuessTest, AFeatureIsNeeded) {
  const TableGuess table = Guess("label,n\n1,7\n0,7\n0,7\n");
  const auto label = GuessLabel("x.csv", table, "");
  ASSERT_THAT(label, base::IsOk());
  EXPECT_THAT(base::Message(CheckFeatures("x.csv", table, *label)),
              HasSubstr("no column beside the label 'label' can be learnt from"));
}

TEST(HeadJsonTest, IsOneObjectWithStableKeys) {
  const std::string text = "age,city\n3,Paris\nNA,R\xffme\n4,Rome\n";
  const auto sample = ParseSample("x.csv", text, static_cast<int64_t>(text.size()));
  ASSERT_THAT(sample, base::IsOk());
  const auto json = nlohmann::json::parse(HeadJson(*sample, GuessTable(*sample), 2));
  for (const char* key :
       {"path", "rows", "whole", "estimatedRows", "delimiter", "header", "badRows", "firstBad", "columns", "head"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["rows"], 3);
  EXPECT_EQ(json["head"].size(), 2u);
  EXPECT_EQ(json["columns"][0]["name"], "age");
  EXPECT_EQ(json["columns"][0]["missing"], 1);
}

}  // namespace
}  // namespace medley::cli
