#include "cli/data/guess.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

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
  EXPECT_FALSE(Guess("age,\n3,DE\n").header);
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

TEST(GuessTest, OnlyNamesThatAManifestCanHoldAreNames) {
  const TableGuess table = Guess(
      "\"a \"\"b\"\", c: #d\",twice,twice,bad\xff,,gr\xc3\xbc\xc3\x9f"
      "e\n1,2,3,4,5,6\n2,3,4,5,6,7\n");
  EXPECT_FALSE(table.header) << "the fifth name is empty";
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

}  // namespace
}  // namespace medley::cli
