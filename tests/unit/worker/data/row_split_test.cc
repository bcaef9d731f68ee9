#include "worker/data/row_split.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/temp_dir.h"
#include "worker/data/dataset.h"
#include "worker/data/row_parser.h"

namespace medley::worker {
namespace {

using testing::HasSubstr;

class RowSplitTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("split"); }
  void TearDown() override { base::RemoveTempDir(folder_); }

  // Label in column 0, then a category and a number, which tells the row.
  absl::StatusOr<std::shared_ptr<const Dataset>> Load(const std::string& text, double fraction, uint64_t seed = 1,
                                                      int threads = 1, int64_t bad_rows = 0, int buckets = 0) {
    std::ofstream(folder_ / "x.csv", std::ios::binary) << text;
    model::DataSpec spec;
    spec.schema.label_column = 0;
    spec.schema.categorical = {1};
    spec.schema.numeric = {2};
    spec.schema.numeric_buckets = buckets;
    spec.max_bad_rows = bad_rows;
    if (fraction > 0) spec.validation.emplace() = {.fraction = fraction, .seed = seed, .source = {}};
    return Dataset::Load({"file:///x.csv", "csv"}, spec, nullptr,
                         {.embedding_rows = 1000, .threads = threads, .root = folder_.string()});
  }
  static std::string Table(int rows) {
    std::string text;
    for (int row = 0; row < rows; ++row) text += fmt::format("{},c{},{}\n", row % 2, row % 7, row);
    return text;
  }
  // The number in column 2 of each row.
  static std::vector<int> Rows(const Dataset& data) {
    const NumericTransform& column = data.transform().columns[0];
    std::vector<int> rows;
    for (const float z : data.view().numerics) {
      const double t = double{z} / column.inverse_deviation + column.mean;
      rows.push_back(static_cast<int>(std::lround(column.log ? std::expm1(t) : t)));
    }
    return rows;
  }

  std::filesystem::path folder_;
};

TEST_F(RowSplitTest, EveryRowIsInOnePartAndTheOrderStays) {
  const auto data = Load(Table(1000), 0.2);
  ASSERT_TRUE(data.ok()) << data.status();
  const Dataset& validation = *(*data)->validation();
  const std::vector<int> kept = Rows(**data);
  const std::vector<int> aside = Rows(validation);
  EXPECT_EQ(kept.size() + aside.size(), 1000U);
  EXPECT_NEAR(static_cast<double>(aside.size()), 200, 40);
  EXPECT_TRUE(std::ranges::is_sorted(kept));
  EXPECT_TRUE(std::ranges::is_sorted(aside));
  std::vector<int> all = kept;
  all.insert(all.end(), aside.begin(), aside.end());
  std::ranges::sort(all);
  for (int row = 0; row < 1000; ++row) ASSERT_EQ(all[static_cast<size_t>(row)], row);
  for (size_t i = 0; i < aside.size(); ++i) {
    EXPECT_TRUE(IsForValidation(0.2, 1, aside[i]));
    EXPECT_EQ(validation.view().labels[i], static_cast<float>(aside[i] % 2)) << "labels stay with their rows";
  }
}

// The ids of buckets are in the rows too, after those of categories.
TEST_F(RowSplitTest, IdsOfBucketsStayWithTheirRows) {
  const auto data = Load(Table(1000), 0.2, 1, 2, 0, 8);
  ASSERT_TRUE(data.ok()) << data.status();
  for (const Dataset* part : {data->get(), (*data)->validation().get()}) {
    const std::vector<int> rows = Rows(*part);
    ASSERT_EQ(part->view().ids.size(), 2 * rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(part->view().ids[2 * i], HashedId(fmt::format("c{}", rows[i] % 7), 0, 1000));
      const int bucket = part->transform().columns[0].Bucket(rows[i]);
      EXPECT_EQ(part->view().ids[2 * i + 1], HashedId(std::to_string(bucket), 1, 1000));
    }
  }
}

// The split must not depend on how the rows were read, so that all trainers agree.
TEST_F(RowSplitTest, ThreadsAndBadRowsDoNotChangeIt) {
  std::string text = Table(20'000);
  const auto one = Load(text, 0.1, 5);
  const auto four = Load(text, 0.1, 5, 4);
  const auto bad = Load("1,x\n" + text + "oops\n", 0.1, 5, 3, 2);
  ASSERT_TRUE(one.ok() && four.ok() && bad.ok()) << one.status() << four.status() << bad.status();
  EXPECT_EQ(Rows(*(*one)->validation()), Rows(*(*four)->validation()));
  EXPECT_EQ((*one)->digest(), (*four)->digest());
  EXPECT_EQ(Rows(*(*one)->validation()), Rows(*(*bad)->validation())) << "rows that cannot be read are not counted";
}

TEST_F(RowSplitTest, AnotherSeedPutsOtherRowsAside) {
  const auto first = Load(Table(500), 0.2, 1);
  const auto second = Load(Table(500), 0.2, 2);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(Rows(*(*first)->validation()), Rows(*(*second)->validation()));
}

// A larger fraction contains the rows of a smaller one.
TEST_F(RowSplitTest, TheFractionIsThatOfTheRows) {
  for (const double fraction : {0.01, 0.1, 0.5, 0.99}) {
    int count = 0;
    for (int64_t row = 0; row < 100'000; ++row) {
      count += IsForValidation(fraction, 7, row) ? 1 : 0;
      EXPECT_TRUE(!IsForValidation(fraction, 7, row) || IsForValidation(fraction + 0.005, 7, row));
    }
    EXPECT_NEAR(count, 100'000 * fraction, 5 * std::sqrt(100'000 * fraction * (1 - fraction))) << fraction;
  }
}

// The mean of the training rows alone: the validation data must be as new to the model as test data.
TEST_F(RowSplitTest, TransformsAreFittedOnTheTrainingRows) {
  std::string text;
  double sum = 0;
  int rows = 0;
  for (int row = 0; row < 400; ++row) {
    const bool aside = IsForValidation(0.25, 1, row);
    const int value = aside ? 1'000'000 : row % 10;
    if (!aside) {
      sum += value;
      ++rows;
    }
    text += fmt::format("{},a,{}\n", row % 2, value);
  }
  const auto data = Load(text, 0.25);
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_FALSE((*data)->transform().columns[0].log);
  EXPECT_NEAR((*data)->transform().columns[0].mean, sum / rows, 1e-9);
}

TEST_F(RowSplitTest, TheDigestCountsBothParts) {
  const std::string text = Table(200);
  const auto data = Load(text, 0.3);
  const auto whole = Load(text, 0);
  ASSERT_TRUE(data.ok() && whole.ok());
  const int aside = Rows(*(*data)->validation()).front();
  std::string changed;
  for (int row = 0; row < 200; ++row) {
    changed += fmt::format("{},c{},{}\n", row % 2, row % 7, row == aside ? 77'777 : row);
  }
  const auto other = Load(changed, 0.3);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ((*data)->digest().size(), 32U);
  EXPECT_NE((*data)->digest(), (*whole)->digest());
  EXPECT_NE((*data)->digest(), (*other)->digest()) << "a changed row of the validation data";
  EXPECT_EQ((*whole)->validation(), nullptr);
}

TEST_F(RowSplitTest, PartsWithoutRowsOrWithoutAClassAreRefused) {
  const auto none = Load("0,a,1\n1,b,2\n", 1e-9);
  EXPECT_THAT(base::Message(none.status()), HasSubstr("leaves none for validation"));
  const auto all = Load("0,a,1\n1,b,2\n", 1 - 1e-9);
  EXPECT_THAT(base::Message(all.status()), HasSubstr("leaves none for training"));
  std::string text;
  for (int row = 0; row < 50; ++row) text += fmt::format("{},a,{}\n", IsForValidation(0.3, 1, row) ? 1 : 0, row);
  EXPECT_THAT(base::Message(Load(text, 0.3).status()), HasSubstr("puts all rows of one class aside"));
}

TEST_F(RowSplitTest, BatchesAreDividedInTheSameWay) {
  Batch rows;
  rows.shape = {.fields = 2, .numerics = 1, .labels = 1};
  rows.samples = 300;
  for (int row = 0; row < rows.samples; ++row) {
    rows.ids.insert(rows.ids.end(), {row, -row});
    rows.numerics.push_back(static_cast<float>(row));
    rows.labels.push_back(static_cast<float>(row % 3));
  }
  const Batch aside = TakeValidation({.fraction = 0.2, .seed = 9, .source = {}}, rows);
  EXPECT_EQ(aside.samples + rows.samples, 300);
  for (const Batch* part : {&aside, &std::as_const(rows)}) {
    ASSERT_EQ(part->numerics.size(), static_cast<size_t>(part->samples));
    for (int i = 0; i < part->samples; ++i) {
      const auto row = static_cast<int>(part->numerics[static_cast<size_t>(i)]);
      EXPECT_EQ(IsForValidation(0.2, 9, row), part == &aside);
      EXPECT_EQ(part->ids[static_cast<size_t>(2 * i)], row);
      EXPECT_EQ(part->ids[static_cast<size_t>(2 * i + 1)], -row);
      EXPECT_EQ(part->labels[static_cast<size_t>(i)], static_cast<float>(row % 3));
    }
  }
}

}  // namespace
}  // namespace medley::worker
