// Tables as people have them: what `medley init` guesses is right, or said.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "cli/data/guess.h"
#include "cli/data/job_text.h"
#include "cli/data/label_guess.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"

namespace medley::cli {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TableGuess TableOf(const std::string& text) {
  const auto sample = ParseSample("x.csv", text, static_cast<int64_t>(text.size()));
  EXPECT_THAT(sample, IsOk());
  return GuessTable(*sample);
}

// A table of 300 rows with a column "x" and the label "y".
template <typename X, typename Y>
TableGuess Rows(const X& x, const Y& y) {
  std::string text = "x,other,y\n";
  for (int i = 0; i < 300; ++i) text += fmt::format("{},{},{}\n", x(i), i * 7 % 90, y(i));
  return TableOf(text);
}

int Number(int i) { return i * 13 % 97; }
int ZeroOrOne(int i) { return i % 3 == 0 ? 1 : 0; }

std::string Said(const std::vector<std::string>& sentences) {
  std::string all;
  for (const std::string& sentence : sentences) all += sentence + "\n";
  return all;
}

TEST(MessyTest, NumbersWithUnitsAndOfOtherBasesAreNamed) {
  const struct {
    const char* form;
    const char* example;
  } kForms[] = {{"{} kg", "'0 kg'"}, {"{}ms", "'0ms'"}, {"{:#x}", "'0x0'"}, {"({})", "'(0)'"}, {"{}.5M", "'0.5M'"}};
  for (const auto& each : kForms) {
    const TableGuess table = Rows([&](int i) { return fmt::format(fmt::runtime(each.form), Number(i)); }, ZeroOrOne);
    EXPECT_THAT(Said(table.columns[0].because),
                AllOf(HasSubstr("300 rows of 'x' are numbers written in another form"), HasSubstr(each.example)))
        << each.form;
  }
  for (const char* name : {"{}A-7", "flat {}", "{}{}x9", "0x{}z"}) {
    const TableGuess table = Rows([&](int i) { return fmt::format(fmt::runtime(name), Number(i), i % 10); }, ZeroOrOne);
    EXPECT_THAT(Said(table.columns[0].because), Not(HasSubstr("another form"))) << name;
  }
}

TEST(MessyTest, TextsThatDifferInCapitalsAreNamed) {
  const char* const cities[] = {"Rome", "rome", "Oslo", "PARIS", "Paris"};
  const TableGuess table = Rows([&](int i) { return cities[i % 5]; }, ZeroOrOne);
  EXPECT_THAT(Said(table.columns[0].because),
              HasSubstr("'PARIS' and 'Paris' of 'x' differ only in capital letters, and 1 more such pairs"));
  const char* const answers[] = {"Yes", "no", "yes", "No", "YES"};
  const auto label = GuessLabel("x.csv", Rows(Number, [&](int i) { return answers[i % 5]; }), "");
  ASSERT_THAT(label, IsOk());
  EXPECT_EQ(label->task, model::Task::kMultiClass);
  EXPECT_THAT(Said(label->because), AllOf(HasSubstr("the labels 'No', 'no' differ only in capital letters"),
                                          HasSubstr("the labels 'YES', 'Yes', 'yes' differ")));
}

TEST(MessyTest, WordsForYesCountAsOneInSeveralLanguages) {
  const std::pair<const char*, const char*> kWords[] = {
      {"ja", "nein"}, {"oui", "non"}, {"Sí", "No"}, {"sim", "não"}, {"True", "False"}, {"Y", "N"}, {"wahr", "falsch"}};
  for (const auto& [yes, no] : kWords) {
    for (const int frequent : {2, 5}) {  // whichever is the rarer one
      const auto label = GuessLabel("x.csv", Rows(Number, [&](int i) { return i % 7 < frequent ? yes : no; }), "");
      ASSERT_THAT(label, IsOk());
      EXPECT_EQ(label->positive, yes) << frequent;
    }
  }
}

TEST(MessyTest, NinesThatMeanMissingAreNamed) {
  for (const char* nines : {"-999", "99999", "-9999.0"}) {
    const TableGuess table =
        Rows([&](int i) { return i % 20 == 0 ? std::string(nines) : fmt::format("{}.5", Number(i)); }, ZeroOrOne);
    EXPECT_EQ(table.columns[0].type, ColumnType::kNumeric);
    EXPECT_THAT(Said(table.columns[0].because),
                HasSubstr(fmt::format("'{}' (15 rows) of 'x' lies far outside of all other values", nines)));
  }
  for (const auto& x : {std::string("99"), std::string("12345"), std::string("-998")}) {  // 99 is among the others
    const TableGuess table =
        Rows([&](int i) { return i % 20 == 0 ? x : fmt::format("{}.5", Number(i) * 2); }, ZeroOrOne);
    EXPECT_THAT(table.columns[0].because, IsEmpty()) << x;
  }
  const TableGuess once = Rows([&](int i) { return i == 7 ? "9999" : fmt::format("{}.5", Number(i)); }, ZeroOrOne);
  EXPECT_THAT(once.columns[0].because, IsEmpty()) << "one row may be true";
}

TEST(MessyTest, ColumnsWithoutNamesDoNotHideAHeader) {
  const auto table = [](const std::string& header) {
    std::string text = header + "\n";
    for (int i = 0; i < 60; ++i)
      text += fmt::format("{},c{},{},{}\n", i * 7 % 59, i % 5, i * 3 % 53, i % 2 == 0 ? "yes" : "no");
    return TableOf(text);
  };
  const TableGuess blank = table(",city,,bought");
  EXPECT_TRUE(blank.header);
  EXPECT_FALSE(blank.columns[0].named);
  EXPECT_EQ(blank.columns[0].type, ColumnType::kNumeric);
  EXPECT_EQ(blank.columns[3].name, "bought");
  EXPECT_FALSE(table(",c1,,yes").header) << "a row without two numbers";
  EXPECT_FALSE(table(",,,yes").header);
}

TEST(MessyTest, MoreColumnsThanAJobHasAreASentence) {
  std::string text = "y";
  for (int c = 0; c < 4100; ++c) text += fmt::format(",f{}", c);
  text += "\n";
  for (int i = 0; i < 40; ++i) {
    text += std::to_string(i % 2);
    for (int c = 0; c < 4100; ++c) text += fmt::format(",{}.5", (i * 7 + c) % 61);
    text += "\n";
  }
  const TableGuess table = TableOf(text);
  const auto label = GuessLabel("x.csv", table, "y");
  ASSERT_THAT(label, IsOk());
  EXPECT_THAT(CheckFeatures("x.csv", table, *label),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4100 columns of numbers and 0 of categories")));
}

TEST(MessyTest, PagesAndJsonAreNamedAsWhatTheyAre) {
  const auto error = [](const std::string& text) {
    return base::Message(ParseSample("x.csv", text, static_cast<int64_t>(text.size())).status());
  };
  EXPECT_EQ(error("\n<!DOCTYPE html>\n<html><body>Log in</body></html>\n"),
            "x.csv: is HTML or XML, not a table: save or convert it as CSV");
  EXPECT_THAT(error("<?xml version=\"1.0\"?><a/>"), HasSubstr("is HTML or XML"));
  EXPECT_THAT(error("{\"a\": 1, \"y\": 0}\n{\"a\": 2, \"y\": 1}\n"), HasSubstr("is JSON"));
  EXPECT_THAT(error("[{\"a\": 1}]"), HasSubstr("is JSON"));
  EXPECT_EQ(error("<=50K,1\n>50K,2\n"), "");
}

TEST(MessyTest, DecimalCommasAreNotTakenForThousands) {
  const TableGuess table = Rows([](int i) { return fmt::format("\"{},{:03}\"", i % 9, Number(i) * 10); }, ZeroOrOne);
  EXPECT_NE(table.columns[0].type, ColumnType::kNumeric);
  EXPECT_THAT(Said(table.columns[0].because), Not(HasSubstr("commas between thousands")));
}

TEST(MessyTest, IgnoresACommaAtTheEndOfEachRow) {
  std::string text = "a,b,label,\n";
  for (int i = 0; i < 50; ++i) text += fmt::format("{},{},{},\n", i * 7 % 31, i * 3 % 29, i % 2);
  const TableGuess table = TableOf(text);
  EXPECT_TRUE(table.header);
  EXPECT_EQ(table.columns[3].type, ColumnType::kConstant);
  const auto label = GuessLabel("x.csv", table, "");
  ASSERT_THAT(label, IsOk());
  EXPECT_EQ(label->column, 2);
}

TEST(MessyTest, LabelsLikePricesAreLearntAsLogarithms) {
  base::Rng rng(5);
  const auto normal = [&] {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(rng.Below(1'000'000)) / 1e6;
    return sum;
  };
  const auto guess = [&](const auto& y) {
    const TableGuess table = Rows(Number, y);
    const auto label = GuessLabel("x.csv", table, "y");
    EXPECT_THAT(label, IsOk());
    return std::pair(JobText({.file = "x.yaml", .name = "x", .rows = 300}, table, *label), *label);
  };
  const auto [prices, price] = guess([&](int) { return fmt::format("{:.2f}", 200'000 * std::exp(0.8 * normal())); });
  EXPECT_TRUE(price.log);
  EXPECT_THAT(prices, AllOf(HasSubstr("label: {column: \"y\", transform: Log1p}"), HasSubstr("a few are much larger")));
  for (const auto& [what, text] : std::map<std::string, std::string>{
           {"even", guess([&](int) { return fmt::format("{:.2f}", 100 + 10 * normal()); }).first},
           {"one wrong value",
            guess([&](int i) { return fmt::format("{:.2f}", i == 7 ? 1e5 : 100 + 10 * normal()); }).first},
           {"negative ones", guess([&](int) { return fmt::format("{:.2f}", std::exp(normal()) - 1); }).first}}) {
    EXPECT_THAT(text, HasSubstr("label: {column: \"y\"}")) << what;
    EXPECT_THAT(text, Not(HasSubstr("Log1p"))) << what;
  }
}

TEST(MessyTest, LeavesAColumnOfWeightsOutOfTheFeatures) {
  std::string text = "x,city,sample_weight,y\n";
  for (int i = 0; i < 300; ++i) {
    text += fmt::format("{},c{},{},{}\n", Number(i), i % 5, i == 9 ? "" : fmt::format("0.{}", 10 + i % 89), i % 2);
  }
  const TableGuess table = TableOf(text);
  auto label = GuessLabel("x.csv", table, "y");
  ASSERT_THAT(label, IsOk());
  EXPECT_THAT(FindWeights(table, *label), ElementsAre(HasSubstr("with --weight 'sample_weight' rows count so")));
  ASSERT_THAT(UseWeight("x.csv", table, "sample_weight", *label), IsOk());
  EXPECT_EQ(label->unweighted, 1);
  EXPECT_THAT(FindWeights(table, *label), IsEmpty());
  const std::string job = JobText({.file = "x.yaml", .name = "x", .rows = 300}, table, *label);
  EXPECT_THAT(job, AllOf(HasSubstr("weight: \"sample_weight\""), HasSubstr("numeric: [\"x\"]")));
  const auto refused = [&](const std::string& column) {
    return base::Message(UseWeight("x.csv", table, column, *label));
  };
  EXPECT_THAT(refused("sample_weights"), HasSubstr("did you mean `sample_weight`"));
  EXPECT_THAT(refused("y"), HasSubstr("both the label and the weight"));
  EXPECT_THAT(refused("city"), HasSubstr("is 'c0' in some rows; weights are numbers from 0 on"));
}

}  // namespace
}  // namespace medley::cli
