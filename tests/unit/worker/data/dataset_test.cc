#include "worker/data/dataset.h"
#include "common/base/testing/temp_dir.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "worker/data/row_parser.h"

namespace medley::worker {
namespace {

using ::testing::HasSubstr;

class DatasetTest : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("dataset"); }
  void TearDown() override { base::RemoveTempDir(folder_); }

  // Writes a file and reads it: label in column 0, one categorical and one numeric column.
  absl::StatusOr<std::shared_ptr<const Dataset>> Load(const std::string& text, const Transform* transform = nullptr,
                                                      int threads = 1) {
    std::ofstream(folder_ / "x.csv", std::ios::binary) << text;
    spec_.schema.label_column = spec_.schema.label_columns.empty() ? 0 : -1;
    spec_.schema.categorical = {1};
    spec_.schema.numeric = {2};
    return Dataset::Load({"file:///x.csv", spec_.train.format.empty() ? "csv" : spec_.train.format}, spec_, transform,
                         {.embedding_rows = 1000, .threads = threads, .root = folder_.string()});
  }
  std::string Error(const std::string& text) {
    const auto data = Load(text);
    EXPECT_EQ(data.status().code(), absl::StatusCode::kInvalidArgument);
    return base::Message(data.status());
  }

  std::filesystem::path folder_;
  model::DataSpec spec_;
};

TEST_F(DatasetTest, ReadsRows) {
  const auto data = Load("1, red, 3\r\n\n0, blue, 5\n1,red,4");
  ASSERT_TRUE(data.ok()) << base::ToString(data.status());
  EXPECT_EQ((*data)->rows(), 3);
  const Batch& rows = (*data)->all();
  EXPECT_EQ(rows.labels, (std::vector<float>{1, 0, 1}));
  EXPECT_EQ(rows.ids[0], HashedId("red", 0, 1000));
  EXPECT_EQ(rows.ids[0], rows.ids[2]);
  EXPECT_NE(rows.ids[0], rows.ids[1]);
  EXPECT_NEAR(rows.numerics[2], 0, 1e-6);
  EXPECT_NEAR(rows.numerics[0], -rows.numerics[1], 1e-6);
}

TEST_F(DatasetTest, TheDigestIsThatOfTheParsedRows) {
  const auto digest = [&](const std::string& text, int threads = 1) {
    return (*Load(text, nullptr, threads))->digest();
  };
  const std::string first = digest("1,red,3\n0,blue,5\n1,red,4\n");
  EXPECT_EQ(first.size(), 32u);
  EXPECT_EQ(digest("1, red, 3.0\r\n\n0, blue, 5\n1,red,4"), first);  // the same values, written in another way
  EXPECT_EQ(digest("1,red,3\n0,blue,5\n1,red,4\n", 4), first);
  EXPECT_NE(digest("1,red,4\n0,blue,5\n1,red,3\n"), first);  // reversed
  EXPECT_NE(digest("1,red,3\n0,blue,5\n1,red,4\n1,red,4\n"), first);
  EXPECT_NE(digest("1,red,3\n0,blue,5\n1,green,4\n"), first);
  EXPECT_NE(digest("1,red,3\n0,blue,5\n0,red,4\n"), first);
  EXPECT_NE(digest("1,red,3\n0,blue,\n1,red,4\n"), first);
}

TEST_F(DatasetTest, NamesTheLineOfABadRow) {
  EXPECT_THAT(Error("1,a,3\n0,b,x7\n"), HasSubstr("x.csv:2: column 2: 'x7' is not a number"));
  EXPECT_THAT(Error("1,a,3\n\n0,b\n"), HasSubstr("x.csv:3: the line has 2 columns, the schema needs 3"));
  EXPECT_THAT(Error("1,a,3\n2,a,3\n"), HasSubstr("x.csv:2: column 0: the label '2' is neither 0 nor 1"));
  EXPECT_THAT(Error("1,\"a,3\n"), HasSubstr("x.csv:1: a quoted field has no closing quote"));
  EXPECT_THAT(Error("1,a,inf\n"), HasSubstr("not a number"));
  spec_.schema.header = true;
  EXPECT_THAT(Error("l,c,n\n1,a,3\n,b,1\n"), HasSubstr("x.csv:3: column 0: the label is empty"));
  EXPECT_THAT(Error("l,c,n"), HasSubstr("has no rows"));
  EXPECT_THAT(Error(""), HasSubstr("has no rows"));
}

TEST_F(DatasetTest, BadRowsUpToTheLimitAreLeftOut) {
  spec_.max_bad_rows = 2;
  const auto data = Load("1,a,3\nbad\n0,b,?\nworse\n");
  ASSERT_TRUE(data.ok()) << base::ToString(data.status());
  EXPECT_EQ((*data)->rows(), 2);
  EXPECT_EQ((*data)->bad_rows(), 2);
  EXPECT_EQ((*data)->all().numerics[1], 0);
  EXPECT_THAT(Error("1,a,3\nbad\n0,b,?\nworse\nx\n"),
              HasSubstr("x.csv:2: the line has 1 columns, the schema needs 3 (3 rows"));
}

// Issue 45: one nan made a column of numbers unreadable; "12,5" after a line break in quotes was a row of its own.
TEST_F(DatasetTest, ReadsRowsOfSeveralLinesAndMissingValues) {
  const auto data = Load("1,\"red\nwine\",3\r\n0,blue,nan\n1,red,N/A\n0,\"a\r\n\r\nb\",5\n");
  ASSERT_TRUE(data.ok()) << base::ToString(data.status());
  EXPECT_EQ((*data)->rows(), 4);
  EXPECT_EQ((*data)->all().ids[0], HashedId("red\nwine", 0, 1000));
  EXPECT_EQ((*data)->all().numerics, (std::vector<float>{-1, 0, 0, 1}));
  EXPECT_THAT(Error("1,\"red\nwine\",3\n0,b,x\n"), HasSubstr("x.csv:3: column 2: 'x' is not a number"));
  spec_.schema.missing = {"x", "-999"};
  const auto more = Load("1,a,3\n0,b,x\n1,a,-999.0\n0,b,5\n");
  ASSERT_TRUE(more.ok()) << base::ToString(more.status());
  EXPECT_EQ((*more)->all().numerics, (std::vector<float>{-1, 0, 0, 1}));
}

TEST_F(DatasetTest, RowsWithTooManyFieldsAreBad) {
  EXPECT_THAT(Error("1,a,3\n0,b,4,5\n1,c,6\n"), HasSubstr("x.csv:2: expected 3 columns, found 4"));
  spec_.schema.header = true;
  EXPECT_THAT(Error("l,c,n\n1,a,3,9\n0,b,4,9\n"), HasSubstr("x.csv:2: expected 3 columns, found 4"));
}

// Issue 45: seconds since 1970 as float32 lost two minutes of each, and with them what they said of the label.
TEST_F(DatasetTest, LargeNumbersThatDifferLittleStayDifferent) {
  spec_.schema.numeric_buckets = 4;
  const auto data = Load("1,a,1700000001\n0,b,1700000002\n1,c,1700000003\n0,d,1700000004\n");
  ASSERT_TRUE(data.ok()) << base::ToString(data.status());
  const std::vector<float>& numerics = (*data)->all().numerics;
  for (size_t i = 1; i < 4; ++i) EXPECT_NEAR(numerics[i] - numerics[i - 1], 0.894427F, 1e-5) << i;
  EXPECT_NE((*data)->all().ids[1], (*data)->all().ids[3]) << "buckets";
  const auto other = Load("1,a,1700000001\n0,b,1700000002\n1,c,1700000003\n0,d,1700000005\n");
  EXPECT_NE((*data)->digest(), (*other)->digest());
  spec_.schema.task = model::Task::kRegression;
  const auto labels = Load("1700000001,a,1\n1700000003,b,2\n");
  ASSERT_TRUE(labels.ok()) << base::ToString(labels.status());
  EXPECT_EQ((*labels)->all().labels, (std::vector<float>{-1, 1}));
}

TEST_F(DatasetTest, VeryLargeAndVerySmallNumbersAreStandardised) {
  for (const char* unit : {"e-300", "e39", "e300", ""}) {
    const auto data = Load(fmt::format("1,a,1{0}\n0,b,3{0}\n", unit));
    ASSERT_TRUE(data.ok()) << base::ToString(data.status());
    EXPECT_NEAR((*data)->all().numerics[0], -1, 1e-6) << unit;
    EXPECT_NEAR((*data)->all().numerics[1], 1, 1e-6) << unit;
  }
}

TEST_F(DatasetTest, DatesAreNumbersAndParts) {
  spec_.schema.numeric = {};
  const auto load = [&](const std::string& text) {
    std::ofstream(folder_ / "x.csv") << text;
    spec_.schema.label_column = 0;
    spec_.schema.categorical = {1};
    spec_.schema.numeric = {2, 2, 2, 2, 2};
    spec_.schema.parts.assign(std::begin(model::kDateParts), std::end(model::kDateParts));
    return Dataset::Load({"file:///x.csv", "csv"}, spec_, nullptr, {.root = folder_.string()});
  };
  const auto data = load("1,a,2024-01-31 10:00\n0,b,2024-03-31 12:00\n1,c,\n");
  ASSERT_TRUE(data.ok()) << base::ToString(data.status());
  EXPECT_EQ((*data)->all().numerics, (std::vector<float>{-1, 0, -1, -1, -1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0}));
  EXPECT_THAT(base::Message(load("1,a,2024-01-31\n0,b,soon\n").status()),
              HasSubstr("x.csv:2: column 2: 'soon' is no date or time"));
}

// Columns with numbers in another order were trained and evaluated without a word.
TEST_F(DatasetTest, TheHeaderOfTestDataIsThatOfTheTrainingData) {
  spec_.schema.header = true;
  const auto train = Load("l,c,n,id\n1,a,3,1\n0,b,4,2\n");
  ASSERT_TRUE(train.ok()) << base::ToString(train.status());
  EXPECT_TRUE(Load("l,c,n,other\n1,a,3,1\n0,b,4,2\n", &(*train)->transform()).ok()) << "no column of the schema";
  EXPECT_THAT(
      base::Message(Load("l,n,c,id\n1,3,7,1\n0,4,8,2\n", &(*train)->transform()).status()),
      HasSubstr("x.csv: the header differs from that of the training data: column 1 is 'n', which is 'c' there"));
}

class NamedColumnsTest : public DatasetTest {
 protected:
  absl::StatusOr<std::shared_ptr<const Dataset>> LoadNamed(const std::string& text) {
    std::ofstream(folder_ / "x.csv", std::ios::binary) << text;
    return Dataset::Load({"file:///x.csv", "csv"}, spec_, nullptr, {.embedding_rows = 10, .root = folder_.string()});
  }
  void SetUp() override {
    DatasetTest::SetUp();
    spec_.schema = {.label_column = -1, .categorical = {-1}, .numeric = {2}, .header = true};
    spec_.schema.names = {.label = "bought", .categorical = {"the country"}};
  }
};

TEST_F(NamedColumnsTest, AreFoundInTheHeaderOfTheFile) {
  const auto data = LoadNamed("\xef\xbb\xbf bought ,\"the country\",age\r\n1,DE,3\r\n0,FR,5\r\n");
  ASSERT_TRUE(data.ok()) << base::ToString(data.status());
  const auto other = LoadNamed("the country,bought,age\nDE,1,3\nFR,0,5\n");
  ASSERT_TRUE(other.ok()) << base::ToString(other.status());
  EXPECT_EQ((*data)->all().ids, (*other)->all().ids);
  EXPECT_EQ((*data)->all().labels, (*other)->all().labels);
}

TEST_F(NamedColumnsTest, ANameThatTheHeaderLacksIsRefused) {
  const auto error = [&](const std::string& text) { return base::Message(LoadNamed(text).status()); };
  EXPECT_THAT(error("bougt,the country,age\n1,DE,3\n"),
              HasSubstr("x.csv: the header has no column 'bought'; did you mean `bougt`?"));
  EXPECT_THAT(error("bought,the country,the country\n1,DE,3\n"), HasSubstr("has several columns 'the country'"));
  EXPECT_THAT(error("bought,age,the country\n1,3,DE\n"), HasSubstr("column 2 is used twice in spec.data.schema"));
  EXPECT_THAT(error("bought,\"the country,age\n1,DE,3\n"), HasSubstr("x.csv: the header: a quoted field"));
  EXPECT_THAT(error(""), HasSubstr("x.csv: the header has no column 'bought'"));
  EXPECT_THAT(error("bought,the country,age\nno,DE,3\nyes,DE,4\n"),
              HasSubstr("the label in column 'bought' is neither 0 nor 1"));
}

TEST_F(DatasetTest, LabelsIgnoreATrailingDot) {
  spec_.schema.label_positive = ">50K";
  const auto data = Load(">50K.,a,1\n<=50K,a,1\n >50K ,a,1\n");
  ASSERT_TRUE(data.ok()) << base::ToString(data.status());
  EXPECT_EQ((*data)->all().labels, (std::vector<float>{1, 0, 1}));
}

// Issue 12: `positive: "Yes"` where the file says `yes` trained on one class and reported a log loss of 0.
TEST_F(DatasetTest, LabelsOfOneClassAreRefusedWithTheValuesSeen) {
  EXPECT_THAT(
      Error("no,a,1\nyes,b,2\nno,c,3\n"),
      HasSubstr("x.csv: the label in column 0 is neither 0 nor 1 in any row: it holds \"no\" (2 rows), \"yes\""));
  EXPECT_THAT(Error("0,a,1\n0,b,2\n"), HasSubstr("is 0 in every row that can be used: it holds \"0\" (2 rows)"));
  spec_.schema.label_positive = "Yes";
  EXPECT_THAT(Error("no,a,1\nyes,b,2\nno,c,3\n"),
              HasSubstr("x.csv: the label in column 0 is never \"Yes\", the value of "
                        "spec.data.schema.label.positive: it holds \"no\" (2 rows), \"yes\" (1 row)"));
}

TEST_F(DatasetTest, AClassWhoseRowsAreAllBadIsMissing) {
  spec_.max_bad_rows = 5;
  EXPECT_THAT(
      Error("0,a,1\n1,b,x\n0,c,3\n"),
      HasSubstr("all rows of one class are among those that cannot be parsed; the labels are \"0\" (2 rows), "));
  EXPECT_THAT(Error("no,a,1\nyes,b,2\n"), HasSubstr("is neither 0 nor 1 in any row: it holds \"no\" (1 row), \"yes\""));
}

TEST_F(DatasetTest, LabelsOfARegressionAreStandardisedOnTheTrainingData) {
  spec_.schema.task = model::Task::kRegression;
  const auto train = Load("10,a,1\n30,b,2\n");
  ASSERT_TRUE(train.ok()) << base::ToString(train.status());
  EXPECT_EQ((*train)->all().labels, (std::vector<float>{-1, 1}));
  EXPECT_EQ((*train)->transform().label.mean, 20);
  EXPECT_EQ((*train)->transform().label.deviation, 10);
  const auto test = Load("20,a,1\n20,a,1\n", &(*train)->transform());
  ASSERT_TRUE(test.ok()) << base::ToString(test.status());
  EXPECT_EQ((*test)->all().labels, (std::vector<float>{0, 0}));
  EXPECT_THAT(Error("1,a,1\n,a,1\n"), HasSubstr("x.csv:2: column 0: the label is missing"));
  EXPECT_THAT(Error("1,a,1\nmany,a,1\n"), HasSubstr("x.csv:2: column 0: 'many' is not a number"));
  EXPECT_THAT(Error("5,a,1\n5,b,2\n"), HasSubstr("x.csv: the label in column 0 is 5 in every row"));
}

TEST_F(DatasetTest, ClassesAreThoseOfTheTrainingDataSorted) {
  spec_.schema.task = model::Task::kMultiClass;
  const auto train = Load("red,a,1\n\"b, c\",b,2\nred,a,3\nblue,c,4\n");
  ASSERT_TRUE(train.ok()) << base::ToString(train.status());
  EXPECT_EQ((*train)->transform().label.classes, (std::vector<std::string>{"b, c", "blue", "red"}));
  EXPECT_EQ((*train)->all().labels, (std::vector<float>{2, 0, 2, 1}));
  const auto test = Load("blue,a,1\n", &(*train)->transform());
  ASSERT_TRUE(test.ok()) << base::ToString(test.status());
  EXPECT_EQ((*test)->all().labels, (std::vector<float>{1}));
  const auto unknown = Load("blue,a,1\ngreen,a,1\n", &(*train)->transform());
  EXPECT_THAT(base::Message(unknown.status()),
              HasSubstr("x.csv:2: column 0: the label 'green' is no class of the training data"));
  EXPECT_THAT(Error("red,a,1\nred,b,2\n"), HasSubstr("the label in column 0 is 'red' in every row"));
  spec_.schema.label_classes = {"red", "blue", "never"};
  const auto given = Load("red,a,1\nblue,b,2\n");
  ASSERT_TRUE(given.ok()) << base::ToString(given.status());
  EXPECT_EQ((*given)->all().labels, (std::vector<float>{0, 1}));
  EXPECT_EQ((*given)->transform().label.classes, spec_.schema.label_classes);
}

TEST_F(DatasetTest, ClassesDoNotDependOnThePiecesOfTheFile) {
  spec_.schema.task = model::Task::kMultiClass;
  std::string text;
  for (int i = 0; text.size() < (3U << 20); ++i) {
    text += "class" + std::to_string(i * 7 % 1000 < 900 ? i * 7 % 1000 : 1) + "," + std::string(50, 'x') + ",1\n";
  }
  const auto one = Load(text);
  const auto three = Load(text, nullptr, 3);
  ASSERT_TRUE(one.ok() && three.ok()) << base::ToString(one.status());
  EXPECT_EQ((*one)->transform().label.classes.size(), 900U);
  EXPECT_EQ((*one)->all().labels, (*three)->all().labels);
  EXPECT_EQ((*one)->transform().label.classes[static_cast<size_t>((*one)->all().labels[1])], "class7");
}

TEST_F(DatasetTest, TooManyClassesAreRefused) {
  spec_.schema.task = model::Task::kMultiClass;
  std::string text;
  for (int i = 0; i <= 1000; ++i) text += std::to_string(i) + ",a,1\n";
  EXPECT_THAT(Error(text),
              HasSubstr("the label has more than 1000 different values; for a number set spec.model.task"));
  EXPECT_THAT(Error(text + "more,a,1\n"), HasSubstr("the label has more than 1000 different values"));
}

TEST_F(DatasetTest, SeveralLabelsAreReadFromTheirColumns) {
  spec_.schema.task = model::Task::kMultiLabel;
  spec_.schema.label_columns = {0, 3};
  const auto data = Load("1,a,1,0\n0,b,2,0\n");
  ASSERT_TRUE(data.ok()) << base::ToString(data.status());
  EXPECT_EQ((*data)->shape().labels, 2);
  EXPECT_EQ((*data)->all().labels, (std::vector<float>{1, 0, 0, 0}));
  Batch batch;
  (*data)->Gather(std::vector<int64_t>{1, 0, 1}, batch);
  EXPECT_EQ(batch.labels, (std::vector<float>{0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(std::vector<float>(batch.View(1, 1).labels.begin(), batch.View(1, 1).labels.end()),
            (std::vector<float>{1, 0}));
  EXPECT_THAT(Error("1,a,1,0\n0,a,1,yes\n"), HasSubstr("x.csv:2: column 3: the label 'yes' is neither 0 nor 1"));
  EXPECT_THAT(Error("1,a,1,0\n1,a,1,0\n"), HasSubstr("has one value in all rows"));
}

TEST_F(DatasetTest, BucketsAreFieldsAndTestTakesTheTransformOfTrain) {
  spec_.schema.numeric_buckets = 4;
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::to_string(i % 2) + ",a," + std::to_string(i) + "\n";
  const auto train = *Load(text);
  EXPECT_EQ(train->shape(), (SampleShape{2, 1}));
  const auto test = *Load("0,a,0\n1,a,99\n0,a,500\n", &train->transform());
  EXPECT_EQ(test->all().ids[1], train->all().ids[1]);
  EXPECT_EQ(test->all().ids[3], train->all().ids[199]);
  EXPECT_EQ(test->all().ids[5], train->all().ids[199]);
  EXPECT_EQ(test->all().numerics[0], train->all().numerics[0]);
}

TEST_F(DatasetTest, ThreadsDoNotChangeTheResult) {
  base::Rng rng(3);
  std::string text;
  for (int i = 0; i < 120000; ++i) {
    text += std::to_string(rng.Below(2)) + ",value" + std::to_string(rng.Below(50)) + "," +
            std::to_string(rng.Below(1000)) + "\n";
  }
  ASSERT_GT(text.size(), size_t{1} << 20);
  const auto one = *Load(text);
  const auto three = *Load(text, nullptr, 3);
  EXPECT_EQ(one->rows(), 120000);
  EXPECT_EQ(one->all().ids, three->all().ids);
  EXPECT_EQ(one->all().numerics, three->all().numerics);
  EXPECT_EQ(one->all().labels, three->all().labels);
  const auto broken = Load(text + "oops\n", nullptr, 3);
  EXPECT_THAT(base::Message(broken.status()), HasSubstr("x.csv:120001: the line has 1 columns"));
}

TEST_F(DatasetTest, MissingFileAndUnknownFormat) {
  EXPECT_EQ(Dataset::Load({"file:///no/such", "csv"}, spec_, nullptr, {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Dataset::Load({"file:///x", "orc"}, spec_, nullptr, {}).status().code(), absl::StatusCode::kUnimplemented);
}

// Reading a damaged file never crashes, and the data that is read has the right shape.
TEST_F(DatasetTest, AnyDamage) {
  base::Rng rng(17);
  spec_.max_bad_rows = 1000;
  const std::string good = "1,red,3\n0,blue,5\n1,\"green, dark\",-4.5e3\n0,,\n";
  for (int i = 0; i < 300; ++i) {
    std::string text = good + good;
    for (uint64_t n = 1 + rng.Below(6); n > 0; --n) text[rng.Below(text.size())] = static_cast<char>(rng.Below(256));
    const auto data = Load(text.substr(0, rng.Below(text.size() + 1)));
    if (!data.ok()) continue;
    const Batch& rows = (*data)->all();
    EXPECT_EQ(std::ssize(rows.ids), rows.samples);
    EXPECT_EQ(std::ssize(rows.numerics), rows.samples);
    EXPECT_EQ(std::ssize(rows.labels), rows.samples);
  }
}

TEST(AdultTest, HasAllItsRows) {
  const std::string root = std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/examples/data";
  model::DataSpec spec;
  spec.schema = {.label_column = 14,
                 .label_positive = ">50K",
                 .categorical = {1, 3, 5, 6, 7, 8, 9, 13},
                 .numeric = {0, 2, 4, 10, 11, 12},
                 .numeric_buckets = 32};
  const auto train = Dataset::Load({"file:///adult.train.csv", "csv"}, spec, nullptr, {.root = root});
  ASSERT_TRUE(train.ok()) << base::ToString(train.status());
  const auto test = Dataset::Load({"file:///adult.test.csv", "csv"}, spec, &(*train)->transform(), {.root = root});
  ASSERT_TRUE(test.ok()) << base::ToString(test.status());
  EXPECT_EQ((*train)->rows(), 32561);
  EXPECT_EQ((*test)->rows(), 16281);
  const std::vector<float>& labels = (*test)->all().labels;
  EXPECT_EQ(std::count(labels.begin(), labels.end(), 1.0F), 3846);
}

TEST_F(DatasetTest, WeightsOfRowsAreDividedByTheirMean) {
  spec_.schema.weight_column = 3;
  const auto train = Load("1,a,3,4\n0,b,5,0\n1,c,6,2\n");
  ASSERT_TRUE(train.ok()) << base::ToString(train.status());
  EXPECT_EQ((*train)->all().weights, (std::vector<float>{2, 0, 1}));
  EXPECT_EQ((*train)->transform().weight_mean, 2);
  Batch batch;
  (*train)->Gather(std::vector<int64_t>{2, 0}, batch);
  EXPECT_EQ(batch.weights, (std::vector<float>{1, 2}));
  EXPECT_EQ(batch.View(1, 1).weights.size(), 1U);
  const auto test = Load("1,a,3,1\n0,b,5,1\n", &(*train)->transform());
  ASSERT_TRUE(test.ok()) << base::ToString(test.status());
  EXPECT_EQ((*test)->all().weights, (std::vector<float>{0.5F, 0.5F}));
  EXPECT_NE((*Load("1,a,3,4\n0,b,5,0\n1,c,6,1\n"))->digest(), (*train)->digest());
  for (const char* wrong : {"-1", "many", "", "NA", "inf", "1e16"}) {
    EXPECT_THAT(Error(fmt::format("1,a,3,1\n0,b,5,{}\n", wrong)), HasSubstr("x.csv:2: column 3: ")) << wrong;
  }
  EXPECT_THAT(Error("1,a,3,1\n0,b,5,-0.5\n"), HasSubstr("column 3: the weight '-0.5' is not between 0 and 1e+15"));
  EXPECT_THAT(Error("1,a,3,1\n0,b,5,NA\n"), HasSubstr("column 3: the weight is missing"));
  EXPECT_THAT(Error("1,a,3,0\n0,b,5,0\n"),
              HasSubstr("x.csv: the weight in column 3 (spec.data.weight) is 0 in every row"));
  spec_.max_bad_rows = 1;
  const auto left = Load("1,a,3,1\n0,b,5,-1\n0,c,5,3\n");
  ASSERT_TRUE(left.ok()) << base::ToString(left.status());
  EXPECT_EQ((*left)->all().weights, (std::vector<float>{0.5F, 1.5F}));
}

TEST_F(DatasetTest, RowsForValidationKeepTheirWeights) {
  spec_.schema.weight_column = 2;  // also the number
  spec_.validation.emplace().fraction = 0.5;
  std::string text;
  for (int i = 1; i <= 200; ++i) text += fmt::format("{},a,{}\n", i % 2, i);
  const auto data = Load(text);
  ASSERT_TRUE(data.ok()) << base::ToString(data.status());
  const NumericTransform& column = (*data)->transform().columns[0];
  double mean = 0;
  for (const float weight : (*data)->all().weights)
    mean += static_cast<double>(weight) / static_cast<double>((*data)->rows());
  EXPECT_NEAR(mean, 1, 1e-6);
  for (const Batch& rows : {(*data)->all(), (*data)->validation()->all()}) {
    ASSERT_EQ(rows.weights.size(), static_cast<size_t>(rows.samples));
    for (size_t i = 0; i < rows.weights.size(); ++i) {
      const double number = static_cast<double>(rows.numerics[i]) / column.inverse_deviation + column.mean;
      EXPECT_NEAR(static_cast<double>(rows.weights[i]) * (*data)->transform().weight_mean, number, 1e-3);
    }
  }
}

TEST_F(DatasetTest, LabelsOfALogarithmAreAboveMinusOne) {
  spec_.schema.task = model::Task::kRegression;
  spec_.schema.label_log = true;
  const auto train = Load("0,a,1\n6.38905609893065,b,2\n");  // log(1 + label): 0 and 2
  ASSERT_TRUE(train.ok()) << base::ToString(train.status());
  EXPECT_EQ((*train)->all().labels, (std::vector<float>{-1, 1}));
  EXPECT_TRUE((*train)->transform().label.log);
  EXPECT_NEAR((*train)->transform().label.Number(0), std::exp(1.0) - 1, 1e-12);
  EXPECT_NEAR((*train)->transform().label.Number(1), 6.38905609893065, 1e-12);
  EXPECT_THAT(Error("0,a,1\n-1,b,2\n"),
              HasSubstr("x.csv:2: column 0: the label -1 is not above -1, so spec.data.schema.label.transform Log1p"));
  EXPECT_TRUE(Load("0,a,1\n-0.999,b,2\n").ok());
}

}  // namespace
}  // namespace medley::worker
