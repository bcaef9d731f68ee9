#include "worker/data/label_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::worker {
namespace {

using ::testing::HasSubstr;

class LabelValuesTest : public ::testing::Test {
 protected:
  std::string Problem(const std::vector<std::string>& lines) const {
    LabelValues values(schema_, ',');
    for (const std::string& line : lines) values.Add(line);
    return base::Message(values.Check("/data/x.csv"));
  }

  model::SchemaSpec schema_{.label_column = 1};
};

TEST_F(LabelValuesTest, BothClassesAreFine) {
  EXPECT_EQ(Problem({"a,0", "b,1"}), "");
  schema_.label_positive = "yes";
  EXPECT_EQ(Problem({"a,yes", "b,no", "c,perhaps"}), "");
  EXPECT_EQ(Problem({"a,yes.", "b,no."}), "");
}

TEST_F(LabelValuesTest, WithoutLabelsThereIsNothingToSay) { EXPECT_EQ(Problem({"", "a", "a,\"b", "a,"}), ""); }

TEST_F(LabelValuesTest, APositiveValueThatNeverOccursIsNamedWithTheValuesSeen) {
  schema_.label_positive = "Yes";
  EXPECT_EQ(Problem({"a,no", "b,no", "c,yes"}),
            "/data/x.csv: the label in column 1 is never \"Yes\", the value of spec.data.schema.label.positive: it "
            "holds \"no\" (2 rows), \"yes\" (1 row); did you mean `yes`? Rows of both classes are needed");
}

TEST_F(LabelValuesTest, OneClassOnly) {
  EXPECT_THAT(Problem({"a,0", "b,0"}), HasSubstr("the label in column 1 is 0 in every row that can be used: it holds "
                                                 "\"0\" (2 rows)"));
  EXPECT_THAT(Problem({"a,1"}), HasSubstr("is 1 in every row that can be used: it holds \"1\" (1 row)"));
  EXPECT_THAT(Problem({"a,yes", "b,no"}), HasSubstr("is neither 0 nor 1 in any row: it holds \"no\" (1 row), \"yes\" "
                                                    "(1 row)"));
  schema_.label_positive = "yes";
  EXPECT_THAT(Problem({"a,yes", "b,yes"}),
              HasSubstr("is always the value of spec.data.schema.label.positive: it holds \"yes\" (2 rows)"));
}

TEST_F(LabelValuesTest, ManyAndLongValuesMakeABoundedMessage) {
  schema_.label_positive = "never";
  std::vector<std::string> lines;
  for (int i = 0; i < 5000; ++i) lines.push_back("a," + std::string(100, 'x') + std::to_string(i));
  for (int i = 0; i < 3; ++i) lines.push_back("a," + std::string(100, 'x') + "7");
  const std::string problem = Problem(lines);
  EXPECT_THAT(problem, HasSubstr("holds \"" + std::string(40, 'x') + "... (101 bytes)\" (4 rows), "));
  EXPECT_THAT(problem, HasSubstr(" and other values (4992 rows)"));
  EXPECT_LT(problem.size(), 1000u);
}

TEST_F(LabelValuesTest, AFileIsReadOnlyUntilBothClassesOccurred) {
  const auto folder = base::MakeTempDir("labels");
  ASSERT_THAT(folder.status(), base::IsOk());
  model::DataSpec spec;
  spec.schema = {.label_column = 1, .header = true};
  const auto check = [&](const std::string& text, std::stop_token stop = {}) {
    std::ofstream(*folder / "x.csv") << text;
    return CheckLabels({"file:///x.csv", "csv"}, spec, {}, folder->string(), std::move(stop));
  };
  EXPECT_THAT(check("name,label\na,0\nb,1\n"), base::IsOk());
  model::DataSpec named = spec;
  named.schema.label_column = -1;
  named.schema.names.label = "label";
  std::ofstream(*folder / "x.csv") << "\xef\xbb\xbflabel,name\n0,a\n1,b\n";
  EXPECT_THAT(CheckLabels({"file:///x.csv", "csv"}, named, {}, folder->string(), {}), base::IsOk());
  named.schema.names.label = "labels";
  EXPECT_THAT(base::Message(CheckLabels({"file:///x.csv", "csv"}, named, {}, folder->string(), {})),
              HasSubstr("x.csv: the header has no column 'labels'; did you mean `label`?"));
  EXPECT_THAT(base::Message(check("name,1\na,0\nb,0")), HasSubstr("x.csv: the label in column 1 is 0 in every row"));
  EXPECT_EQ(CheckLabels({"file:///absent.csv", "csv"}, spec, {}, folder->string(), {}).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(CheckLabels({"file:///x.csv", "xml"}, spec, {}, "", {}).code(), absl::StatusCode::kUnimplemented);
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_EQ(check("l\na,0\n", stopped.get_token()).code(), absl::StatusCode::kCancelled);
  base::RemoveTempDir(*folder);
}

TEST_F(LabelValuesTest, OneReadableLabelIsEnoughForOtherTasks) {
  const auto folder = base::MakeTempDir("labels");
  ASSERT_THAT(folder.status(), base::IsOk());
  model::DataSpec spec;
  spec.schema = {.label_column = 1, .task = model::Task::kRegression};
  const auto check = [&](const std::string& text) {
    std::ofstream(*folder / "x.csv") << text;
    return base::Message(CheckLabels({"file:///x.csv", "csv"}, spec, {"red", "blue"}, folder->string(), {}));
  };
  EXPECT_EQ(check("a,?\nb,3.5\n"), "");
  EXPECT_THAT(check("\na,low\nb,high\n"), HasSubstr("x.csv:2: column 1: 'low' is not a number"));
  spec.schema.task = model::Task::kMultiClass;
  EXPECT_EQ(check("a,green\nb,blue\n"), "");
  EXPECT_THAT(check("a,green\n"), HasSubstr("column 1: the label 'green' is no class of the training data"));
  spec.schema = {.label_columns = {0, 1}, .task = model::Task::kMultiLabel};
  EXPECT_EQ(check("1,0\n"), "");
  EXPECT_THAT(check("1,2\n"), HasSubstr("column 1: the label '2' is neither 0 nor 1"));
  base::RemoveTempDir(*folder);
}

}  // namespace
}  // namespace medley::worker
