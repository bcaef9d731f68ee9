#include "worker/predict/row_stream.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;

// Column 0 is categorical, column 1 numeric, column 2 the label.
ExportedModel Model() {
  ExportedModel model;
  model.schema = {.label_column = 2, .categorical = {0}, .numeric = {1}};
  model.embedding_rows = 10;
  model.transform.columns = {{.mean = 1, .inverse_deviation = 0.5F}};
  return model;
}

// Gives the text in pieces of `piece` bytes.
RowStream::Read Pieces(std::string text, size_t piece) {
  return [text = std::move(text), at = size_t{0}, piece](char* to, size_t bytes) mutable -> absl::StatusOr<size_t> {
    const size_t n = std::min({piece, bytes, text.size() - at});
    text.copy(to, n, at);
    at += n;
    return n;
  };
}

absl::Status Drain(RowStream stream) {
  Batch rows;
  do {
    MEDLEY_RETURN_IF_ERROR(stream.Next(2, rows));
  } while (rows.samples > 0);
  return absl::OkStatus();
}

absl::Status DrainText(const std::string& text, RowStream::Labels labels = RowStream::Labels::kIgnored,
                       const ExportedModel& model = Model()) {
  return Drain(RowStream(model, labels, "data.csv", Pieces(text, 1000)));
}

TEST(RowStreamTest, ReadsTheSameRowsFromPiecesOfAnySize) {
  for (const size_t piece : {1, 3, 100}) {
    RowStream stream(Model(), RowStream::Labels::kRequired, "data.csv", Pieces("a,3,1\n\nb,5,0\r\nc,?,1", piece));
    Batch rows;
    ASSERT_THAT(stream.Next(2, rows), IsOk());
    EXPECT_THAT(rows.numerics, ElementsAre(1, 2));
    EXPECT_THAT(rows.labels, ElementsAre(1, 0));
    EXPECT_EQ(rows.ids.size(), 2U);
    ASSERT_THAT(stream.Next(2, rows), IsOk());
    EXPECT_THAT(rows.numerics, ElementsAre(0)) << "a missing value is the mean";
    ASSERT_THAT(stream.Next(2, rows), IsOk());
    EXPECT_EQ(rows.samples, 0);
  }
}

TEST(RowStreamTest, TheLastColumnMayLackWhenItIsTheLabel) {
  RowStream stream(Model(), RowStream::Labels::kIgnored, "data.csv", Pieces("a,3\n", 100));
  Batch rows;
  ASSERT_THAT(stream.Next(2, rows), IsOk());
  EXPECT_EQ(rows.samples, 1);
  EXPECT_THAT(DrainText("a,3\n", RowStream::Labels::kRequired),
              StatusIs(absl::StatusCode::kInvalidArgument, "data.csv:1: expected 3 columns, found 2"));
  ExportedModel model = Model();
  model.schema = {.label_column = 0, .categorical = {1}, .numeric = {2}};
  EXPECT_THAT(DrainText("a,3\n", RowStream::Labels::kIgnored, model),
              StatusIs(absl::StatusCode::kInvalidArgument, "data.csv:1: expected 3 columns, found 2"));
}

TEST(RowStreamTest, SeveralLabelsMayLackTogether) {
  ExportedModel model = Model();
  model.schema.task = model::Task::kMultiLabel;
  model.schema.label_column = -1;
  model.schema.label_columns = {3, 2};
  RowStream with(model, RowStream::Labels::kRequired, "data.csv", Pieces("a,3,1,0\n", 100));
  Batch rows;
  ASSERT_THAT(with.Next(2, rows), IsOk());
  EXPECT_THAT(rows.labels, ElementsAre(0, 1));
  RowStream without(model, RowStream::Labels::kIgnored, "data.csv", Pieces("a,3\n", 100));
  ASSERT_THAT(without.Next(2, rows), IsOk());
  EXPECT_EQ(rows.samples, 1);
  EXPECT_THAT(DrainText("a,3,1\n", RowStream::Labels::kRequired, model),
              StatusIs(absl::StatusCode::kInvalidArgument, "data.csv:1: expected 4 columns, found 3"));
}

// A prediction does not need the label: it may be empty, or a class that the training data did not have.
TEST(RowStreamTest, IgnoredLabelsAreNotRead) {
  ExportedModel model = Model();
  model.schema.task = model::Task::kMultiClass;
  model.transform.label.classes = {"red", "blue"};
  EXPECT_THAT(DrainText("a,3,\nb,5,green\n", RowStream::Labels::kIgnored, model), IsOk());
  EXPECT_THAT(DrainText("a,3,red\nb,5,green\n", RowStream::Labels::kRequired, model),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "data.csv:2: column 2: the label 'green' is no class of the training data"));
}

TEST(RowStreamTest, LabelsAreReadAsInTraining) {
  ExportedModel model = Model();
  model.schema.task = model::Task::kMultiClass;
  model.transform.label.classes = {"red", "blue"};
  RowStream classes(model, RowStream::Labels::kRequired, "data.csv", Pieces("a,3,blue\na,3,red\n", 100));
  Batch rows;
  ASSERT_THAT(classes.Next(2, rows), IsOk());
  EXPECT_THAT(rows.labels, ElementsAre(1, 0));
  model.schema.task = model::Task::kRegression;
  model.transform.label = {.mean = 20, .deviation = 10};
  RowStream numbers(model, RowStream::Labels::kRequired, "data.csv", Pieces("a,3,25\n", 100));
  ASSERT_THAT(numbers.Next(2, rows), IsOk());
  EXPECT_THAT(rows.labels, ElementsAre(0.5F));
}

TEST(RowStreamTest, WeightsAreReadWithTheLabels) {
  ExportedModel model = Model();
  model.schema = {.categorical = {-1}, .numeric = {-1}, .header = true};
  model.schema.names = {.label = "bought", .categorical = {"country"}, .numeric = {"age"}, .weight = "w"};
  model.transform.weight_mean = 4;
  Batch rows;
  RowStream weighted(model, RowStream::Labels::kRequired, "data.csv", Pieces("w,country,age,bought\n2,DE,3,1\n", 100));
  ASSERT_THAT(weighted.Next(2, rows), IsOk());
  EXPECT_THAT(rows.weights, ElementsAre(0.5F));
  EXPECT_THAT(
      DrainText("w,country,age,bought\n-2,DE,3,1\n", RowStream::Labels::kRequired, model),
      StatusIs(absl::StatusCode::kInvalidArgument, "data.csv:2: column 0: the weight '-2' is not between 0 and 1e+15"));
  for (const auto labels : {RowStream::Labels::kRequired, RowStream::Labels::kIgnored}) {
    RowStream without(model, labels, "data.csv", Pieces("country,age,bought\nDE,3,1\n", 100));
    ASSERT_THAT(without.Next(2, rows), IsOk());
    EXPECT_TRUE(rows.weights.empty());
  }
  RowStream ignored(model, RowStream::Labels::kIgnored, "data.csv", Pieces("w,country,age\n-2,DE,3\n", 100));
  ASSERT_THAT(ignored.Next(2, rows), IsOk());
  EXPECT_TRUE(rows.weights.empty());
}

TEST(RowStreamTest, ErrorsNameTheLine) {
  EXPECT_THAT(DrainText("a,3,1\nb,5,0\nc,1\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, "data.csv:3: expected 3 columns, found 2"));
  EXPECT_THAT(DrainText("a,3\nb,5,0\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, "data.csv:2: expected 2 columns, found 3"));
  EXPECT_THAT(DrainText("a,3,1\n\nb,five,0\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, "data.csv:3: column 1: 'five' is not a number"));
  EXPECT_THAT(DrainText("a,3,1\nb,\"5,0\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, "data.csv:2: a quoted field has no closing quote"));
}

// The label may be anywhere, or absent.
TEST(RowStreamTest, FindsNamedColumnsInAnyOrder) {
  ExportedModel model = Model();
  model.schema = {.categorical = {-1}, .numeric = {-1}, .header = true};
  model.schema.names = {.label = "bought", .categorical = {"country"}, .numeric = {"age"}};
  for (const char* text : {"country,age,bought\nDE,3,1\n", "\xef\xbb\xbf\"age\",id,country\r\n3,77,DE\r\n"}) {
    RowStream stream(model, RowStream::Labels::kIgnored, "data.csv", Pieces(text, 100));
    Batch rows;
    ASSERT_THAT(stream.Next(2, rows), IsOk());
    EXPECT_THAT(rows.numerics, ElementsAre(1));
    EXPECT_THAT(rows.ids, ElementsAre(HashedId("DE", 0, 10)));
  }
  EXPECT_THAT(
      DrainText("country,agee,bought\nDE,3,1\n", RowStream::Labels::kIgnored, model),
      StatusIs(absl::StatusCode::kInvalidArgument, "data.csv: the header has no column 'age'; did you mean `agee`?"));
  EXPECT_THAT(DrainText("country,age\nDE,3\n", RowStream::Labels::kRequired, model),
              StatusIs(absl::StatusCode::kInvalidArgument, "data.csv: the header has no column 'bought'"));
}

TEST(RowStreamTest, LeavesOutTheHeader) {
  ExportedModel model = Model();
  model.schema.header = true;
  EXPECT_THAT(DrainText("\xef\xbb\xbfname,amount,label\na,3,1\n", RowStream::Labels::kRequired, model), IsOk());
}

// Issue 45: a model trained with maxBadRows could be neither evaluated nor used.
TEST(RowStreamTest, BadRowsUpToTheLimitAreSkipped) {
  for (const size_t piece : {1, 7, 1000}) {
    RowStream stream(Model(), RowStream::Labels::kRequired, "data.csv",
                     Pieces("a\na,3,1\nb,x,0\nc,\"5,1\nd,5,0\ne,1,1,1\n", piece), 4);
    Batch rows;
    ASSERT_THAT(stream.Next(10, rows), IsOk());
    EXPECT_THAT(rows.numerics, ElementsAre(1, 2));
    EXPECT_THAT(stream.skipped(), ElementsAre(1, 2, 1));
    EXPECT_EQ(stream.bad_rows(), 4);
    EXPECT_EQ(stream.first_bad(), "data.csv:1: expected 3 columns, found 1");
  }
  EXPECT_THAT(Drain(RowStream(Model(), RowStream::Labels::kRequired, "data.csv", Pieces("a,3,1\nb\nc\n", 100), 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "data.csv:2: expected 3 columns, found 1 (2 rows cannot be read, 1 are allowed)"));
}

TEST(RowStreamTest, ReadsRowsOfSeveralLinesFromPiecesOfAnySize) {
  for (const size_t piece : {1, 3, 100}) {
    RowStream stream(Model(), RowStream::Labels::kRequired, "data.csv",
                     Pieces("\xef\xbb\xbf\"a\nb\",3,1\n\"c\r\n\",N/A,1.0\n", piece));
    Batch rows;
    ASSERT_THAT(stream.Next(9, rows), IsOk());
    EXPECT_THAT(rows.ids, ElementsAre(HashedId("a\nb", 0, 10), HashedId("c\r\n", 0, 10)));
    EXPECT_THAT(rows.numerics, ElementsAre(1, 0));
  }
}

TEST(RowStreamTest, ColumnsWithNumbersHaveTheNamesOfTheTrainingData) {
  ExportedModel model = Model();
  model.schema.header = true;
  model.transform.header = {"name", "amount", "label"};
  EXPECT_THAT(DrainText("name,amount\na,3\n", RowStream::Labels::kIgnored, model), IsOk());
  EXPECT_THAT(DrainText("name,amount,other\na,3,1\n", RowStream::Labels::kIgnored, model), IsOk());
  const auto error = [&](const std::string& text, RowStream::Labels labels) {
    return base::Message(DrainText(text, labels, model));
  };
  EXPECT_THAT(error("amount,name,label\n3,4,1\n", RowStream::Labels::kIgnored),
              HasSubstr("data.csv: the header differs from that of the training data: column 0 is 'amount', which is "
                        "'name' there"));
  EXPECT_THAT(error("name,amount,other\na,3,1\n", RowStream::Labels::kRequired),
              HasSubstr("column 2 is 'other', which is 'label' there"));
}

// The numbers of such a model were rounded before they were compared with the edges.
TEST(RowStreamTest, ModelsOfEarlierVersionsComputeAsTheyDid) {
  ExportedModel model = Model();
  model.schema.numeric_buckets = 2;
  model.transform.columns[0].edges = {static_cast<double>(0.1F)};
  for (const bool single : {true, false}) {
    model.transform.single_precision = single;
    RowStream stream(model, RowStream::Labels::kIgnored, "data.csv", Pieces("a,0.1,1\n", 100));
    Batch rows;
    ASSERT_THAT(stream.Next(1, rows), IsOk());
    EXPECT_EQ(rows.ids[1], HashedId(single ? "1" : "0", 1, 10));
  }
}

TEST(RowStreamTest, ReportsErrorsOfTheData) {
  const auto broken = [](char*, size_t) -> absl::StatusOr<size_t> { return base::Unavailable("no disk"); };
  EXPECT_THAT(Drain(RowStream(Model(), RowStream::Labels::kIgnored, "data.csv", broken)),
              StatusIs(absl::StatusCode::kUnavailable, "no disk"));
}

}  // namespace
}  // namespace medley::worker
