// Which keys of embedding tables have rows (spec.training.embeddings), and FTRL.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "common/base/status.h"
#include "common/model/job_spec.h"

namespace medley::model {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<JobSpec> WithTraining(const std::string& training) {
  return ParseJobSpec(R"({"model": {"name": "logistic"}, "data": {
    "train": {"uri": "file:///data/adult.train.csv", "format": "csv"},
    "schema": {"label": {"column": 14, "positive": ">50K"}, "categorical": [1, 3], "numeric": [0, 2]}},
    "training": {)" + training +
                      "}}");
}

TEST(JobSpecRowsTest, FtrlAndEmbeddingsAreRead) {
  const absl::StatusOr<JobSpec> spec = WithTraining(
      R"("optimizer": {"name": "ftrl", "beta": 0, "l1": 0.5, "l2": 2}, "embeddings": {"evictAfter": 100})");
  ASSERT_TRUE(spec.ok()) << base::ToString(spec.status());
  EXPECT_EQ(base::ToString(Validate(*spec)), "OK");
  EXPECT_EQ(spec->training.beta, 0);
  EXPECT_EQ(spec->training.l1, 0.5);
  EXPECT_EQ(spec->training.l2, 2);
  ASSERT_TRUE(spec->training.embeddings);
  EXPECT_EQ(spec->training.embeddings->admit_after, 1);
  EXPECT_EQ(spec->training.embeddings->evict_after, 100);
  EXPECT_EQ(spec->training.embeddings->decay_steps, 0);
  EXPECT_FALSE(WithTraining("")->training.embeddings);
  EXPECT_FALSE(WithTraining("")->training.beta);
}

TEST(JobSpecRowsTest, NumbersOutOfRangeAreRefused) {
  for (const auto& [embeddings, message] :
       std::map<std::string, std::string>{{R"({"admitAfter": 0})", "admitAfter: must be at least 1 and at most"},
                                          {R"({"evictAfter": -1})", "evictAfter: must be at least 1 and at most"},
                                          {R"({"decaySteps": -3})", "decaySteps: must be at least 1 and at most"}}) {
    EXPECT_THAT(base::Message(WithTraining(R"("embeddings": )" + embeddings).status()), HasSubstr(message));
  }
}

TEST(JobSpecRowsTest, BudgetsAreBytes) {
  const JobSpec spec = *WithTraining(R"("embeddings": {"memoryBudget": "512Mi", "diskBudget": "3Ti"})");
  EXPECT_EQ(base::ToString(Validate(spec)), "OK");
  EXPECT_EQ(spec.training.embeddings->memory_budget, 512.0 * (1 << 20));
  EXPECT_EQ(spec.training.embeddings->disk_budget, 3.0 * static_cast<double>(int64_t{1} << 40));
  EXPECT_EQ(WithTraining(R"("embeddings": {"admitAfter": 2})")->training.embeddings->memory_budget, 0);
  for (const char* bad : {"0Mi", "2G", "-1Gi", "Gi", "1.5Gi", "", "2Gi ", "64", "99999999999999Gi"}) {
    for (const char* field : {"memoryBudget", "diskBudget"}) {
      const auto refused = WithTraining(fmt::format(R"("embeddings": {{"{}": "{}"}})", field, bad));
      EXPECT_THAT(base::Message(refused.status()),
                  HasSubstr(fmt::format("spec.training.embeddings.{}: must be a number of bytes such as 2Gi", field)))
          << bad;
    }
  }
}

TEST(JobSpecRowsTest, TheWireHasAFormat) {
  EXPECT_EQ(WithTraining(R"("embeddings": {})")->training.embeddings->wire, "float32");
  const JobSpec spec = *WithTraining(R"("embeddings": {"wire": "bfloat16"})");
  EXPECT_EQ(base::ToString(Validate(spec)), "OK");
  EXPECT_EQ(spec.training.embeddings->wire, "bfloat16");
  EXPECT_THAT(base::Message(WithTraining(R"("embeddings": {"wire": "float8"})").status()),
              HasSubstr("spec.training.embeddings.wire"));
}

}  // namespace
}  // namespace medley::model
