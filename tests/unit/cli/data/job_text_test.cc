#include "cli/data/job_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/document/parse.h"
#include "common/model/job_spec.h"

namespace medley::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Written {
  std::string text;
  model::JobSpec spec;
};

Written Write(const std::string& data, JobInput input) {
  const auto sample = ParseSample("x.csv", data, static_cast<int64_t>(data.size()));
  EXPECT_THAT(sample, base::IsOk());
  const TableGuess table = GuessTable(*sample);
  const auto label = GuessLabel("x.csv", table, "");
  EXPECT_THAT(label, base::IsOk());
  input.sample_rows = std::ssize(table.rows);
  Written written{.text = JobText(input, table, *label), .spec = {}};
  const auto job = document::Parse(written.text.substr(written.text.find("---\n") + 4));
  EXPECT_THAT(job, base::IsOk()) << written.text;
  const auto spec = model::ParseJobSpec(job->at("spec").dump());
  EXPECT_THAT(spec, base::IsOk()) << written.text;
  EXPECT_THAT(model::Validate(*spec), base::IsOk()) << written.text;
  written.spec = *spec;
  return written;
}

JobInput Input() {
  return {.file = "x.yaml",
          .name = "x",
          .folder = "./",
          .train = "x.csv",
          .rows = 1000,
          .cpus = 2,
          .memory_bytes = int64_t{8} << 30};
}

TEST(JobTextTest, IsAJobThatReadsTheColumns) {
  const Written job =
      Write("\"a: \"\"b\"\" #c\",age,label,twice,twice\nx,3,yes,1,u\ny,4,no,2,v\nx,5,no,3,u\n", Input());
  const model::SchemaSpec& schema = job.spec.data.schema;
  EXPECT_TRUE(schema.header);
  EXPECT_EQ(schema.names.label, "label");
  EXPECT_EQ(schema.label_positive, "yes");
  EXPECT_THAT(schema.names.categorical, ElementsAre("a: \"b\" #c", ""));
  EXPECT_THAT(schema.categorical, ElementsAre(-1, 4));
  EXPECT_THAT(schema.numeric, ElementsAre(-1, 3));
  EXPECT_FALSE(job.spec.data.test.has_value());
  EXPECT_THAT(job.text, HasSubstr("# Without test data the model is not evaluated"));
  EXPECT_THAT(job.text, HasSubstr("# \"yes\" (1 row) counts as 1, \"no\" (2 rows) as 0."));
  EXPECT_THAT(job.text, HasSubstr("resources: {cpu: 500m, memory: 1638Mi}"));
}

TEST(JobTextTest, EmbeddingsAreAsWideAsTheLargestColumnNeeds) {
  std::string data = "few,many,label\n";
  for (int i = 0; i < 400; ++i) data += fmt::format("f{},m{},{}\n", i % 3, i % 100, i % 2);
  EXPECT_EQ(Write(data, Input()).spec.model.embedding_dim, 24);
  EXPECT_EQ(Write("few,number,label\na,1,0\nb,2,1\na,4,0\nb,8,1\n", Input()).spec.model.embedding_dim, 4);
}

TEST(JobTextTest, TestDataAreEvaluated) {
  JobInput input = Input();
  input.test = "sub/test.csv";
  input.bad_rows = 1;
  input.format = "tsv";
  const Written job = Write("1\t3\tx\n0\t4\ty\n0\t5\tx\n", input);
  EXPECT_EQ(job.spec.data.test->uri, "file:///data/sub/test.csv");
  EXPECT_EQ(job.spec.data.test->format, "tsv");
  EXPECT_TRUE(job.spec.training.evaluation.has_value());
  EXPECT_TRUE(job.spec.data.schema.names.empty());
  EXPECT_GE(job.spec.data.max_bad_rows, 10);
}

TEST(JobTextTest, ValidationChoosesTheModel) {
  JobInput input = Input();
  const std::string rows = "label,c\n1,x\n0,y\n0,x\n";
  input.validation_fraction = 0.1;
  const Written part = Write(rows, input);
  ASSERT_TRUE(part.spec.data.validation.has_value());
  EXPECT_EQ(part.spec.data.validation->fraction, 0.1);
  EXPECT_EQ(part.spec.data.validation->seed, 1U);
  EXPECT_FALSE(part.spec.data.test.has_value());
  EXPECT_TRUE(part.spec.training.evaluation.has_value()) << "on the validation data";
  EXPECT_TRUE(part.spec.training.early_stopping.has_value());
  EXPECT_THAT(part.text, HasSubstr("because they choose the model"));
  input.validation_fraction = 0;
  input.validation = "sub/validation.csv";
  input.test = "test.csv";
  const Written file = Write(rows, input);
  EXPECT_EQ(file.spec.data.validation->source.uri, "file:///data/sub/validation.csv");
  EXPECT_EQ(file.spec.data.validation->fraction, 0);
  EXPECT_EQ(file.spec.data.test->uri, "file:///data/test.csv");
  EXPECT_EQ(ValidationFraction(99), 0) << "no row can be spared";
  EXPECT_EQ(ValidationFraction(100), 0.2);
  EXPECT_EQ(ValidationFraction(1000), 0.1);
}

TEST(JobTextTest, NumbersAndClassesAreTasksOfTheirOwn) {
  JobInput input = Input();
  input.test = "test.csv";
  const Written number = Write("target,c\n1.5,x\n2,y\n7,x\n", input);
  EXPECT_EQ(number.spec.data.schema.task, model::Task::kRegression);
  EXPECT_EQ(number.spec.training.early_stopping->metric, "mse");
  const Written classes = Write("target,n\na,1\nb,2\nc,3\na,4\nb,5\nc,6\n", input);
  EXPECT_EQ(classes.spec.data.schema.task, model::Task::kMultiClass);
  EXPECT_EQ(classes.spec.training.early_stopping->metric, "logLoss");
  EXPECT_THAT(classes.text, HasSubstr("Its values are 3 classes:\n      #   \"a\" (2 rows)\n"));
}

TEST(JobTextTest, WeightsDecayWhereTheRowsOfTwoClassesTellLittle) {
  const auto job = [](int64_t rows, int ones) {
    std::string data = "label,c\n";
    for (int i = 0; i < 200; ++i) data += fmt::format("{},{}\n", i < ones ? 1 : 0, i % 2 == 0 ? "x" : "y");
    JobInput input = Input();
    input.rows = rows;
    return Write(data, input).spec.training;
  };
  const model::TrainingSpec rare = job(20'000, 4), many = job(20'000, 100), large = job(2'000'000, 4);
  EXPECT_EQ(rare.weight_decay, 0.001);
  EXPECT_EQ(rare.row_decay, 0.001);
  EXPECT_FALSE(many.weight_decay.has_value());
  EXPECT_FALSE(job(1'000, 100).weight_decay.has_value()) << "few rows, but no class is rare";
  EXPECT_FALSE(large.row_decay.has_value());
  JobInput input = Input();
  EXPECT_FALSE(Write("target,c\n1.5,x\n2,y\n7,x\n", input).spec.training.row_decay.has_value()) << "not measured";
}

// Issue 45: what init wrote for 784 columns was refused by the API.
TEST(JobTextTest, ColumnsThatFollowEachOtherAreRanges) {
  std::string text = "label";
  for (int i = 0; i < 784; ++i) text += fmt::format(",pixel{}", i);
  for (int row = 0; row < 4; ++row) {
    text += fmt::format("\n{}", row % 2);
    for (int i = 0; i < 784; ++i) text += fmt::format(",{}", (row + i) % 5);
  }
  const Written names = Write(text, Input());
  EXPECT_EQ(names.spec.data.schema.numeric.size(), 784U);
  EXPECT_EQ(names.spec.data.schema.names.numeric.back(), "pixel783");
  EXPECT_THAT(names.text, HasSubstr("numeric: [\"pixel0..pixel783\"]"));
  const Written numbers = Write(text.substr(text.find('\n') + 1), Input());
  EXPECT_EQ(numbers.spec.data.schema.numeric.back(), 784);
  std::string many = "label";
  for (int i = 0; i < 600; ++i) many += fmt::format(",n{}x", i);
  for (int row = 0; row < 4; ++row) {
    many += fmt::format("\n{}", row % 2);
    for (int i = 0; i < 600; ++i) many += fmt::format(",{}", (row + i) % 5);
  }
  EXPECT_THAT(Write(many, Input()).text, HasSubstr("numeric: [\"1..600\"]")) << "more names than a list may have";
}

TEST(JobTextTest, DatesMissingTextsAndSeveralLabels) {
  std::string text = "when,x,label_a,label_b,label_c\n";
  for (int i = 0; i < 100; ++i) {
    text += fmt::format("{}/{}/2024,{},{},{},{}\n", 1 + i % 28, 1 + i % 12,
                        i == 50 ? "unknown" : std::to_string(i * 0.5), i % 2, i / 2 % 2, i / 4 % 2);
  }
  const Written job = Write(text, Input());
  const model::SchemaSpec& schema = job.spec.data.schema;
  EXPECT_EQ(schema.task, model::Task::kMultiLabel);
  EXPECT_THAT(schema.names.labels, ElementsAre("label_a", "label_b", "label_c"));
  EXPECT_TRUE(schema.day_first);
  EXPECT_THAT(schema.missing, ElementsAre("unknown"));
  EXPECT_EQ(schema.numeric.size(), 6U) << "a number and the five parts of a date";
  EXPECT_THAT(job.text, HasSubstr("# 99 % of 'x' are numbers; 'unknown' (1 row) is taken as missing."));
}

TEST(JobTextTest, OneKindOfFeatureIsEnough) {
  EXPECT_TRUE(Write("label,c\n1,x\n0,y\n0,x\n", Input()).spec.data.schema.numeric.empty());
  EXPECT_TRUE(Write("label,c\n1,3\n0,4\n0,7\n", Input()).spec.data.schema.categorical.empty());
}

TEST(JobTextTest, TheNameOfTheJob) {
  EXPECT_EQ(JobNameOf("/data/Churn Data (2).csv"), "churn-data-2");
  EXPECT_EQ(JobNameOf("2024.csv.gz"), "job-2024");
  EXPECT_EQ(JobNameOf("part-*.csv"), "part");
  EXPECT_EQ(JobNameOf("\xc3\xbc.csv"), "job");
  EXPECT_EQ(JobNameOf(std::string(100, 'a')).size(), 30u);
}

TEST(JobTextTest, DataInAnObjectStoreNeedNoVolume) {
  JobInput input{.file = "x.yaml", .name = "x", .folder = "", .train = "s3://shop/train/part-*.csv", .rows = 1000};
  input.test = "s3://shop/test.csv";
  std::string data = "a,b,y\n";
  for (int row = 0; row < 40; ++row) data += fmt::format("{},{},{}\n", row, row % 7, row % 2);
  const Written written = Write(data, input);
  EXPECT_EQ(written.spec.data.train.uri, "s3://shop/train/part-*.csv");
  EXPECT_EQ(written.spec.data.test->uri, "s3://shop/test.csv");
  EXPECT_EQ(written.text.find("hostPath"), std::string::npos) << written.text;
}

}  // namespace
}  // namespace medley::cli
