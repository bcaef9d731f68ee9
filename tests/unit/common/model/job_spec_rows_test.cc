// Which keys of embedding tables have rows (spec.training.embeddings), and FTRL.
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
       std::map<std::string, std::string>{{R"({"admitAfter": 0})", "admitAfter: 0 is not between 1 and"},
                                          {R"({"evictAfter": -1})", "evictAfter: -1 is not between 1 and"},
                                          {R"({"decaySteps": -3})", "decaySteps: -3 is not between 1 and"}}) {
    EXPECT_THAT(base::Message(Validate(*WithTraining(R"("embeddings": )" + embeddings))), HasSubstr(message));
  }
}

TEST(JobSpecRowsTest, EmbeddingsNeedTables) {
  JobSpec spec = *WithTraining(R"("embeddings": {"admitAfter": 2})");
  EXPECT_EQ(base::ToString(Validate(spec)), "OK");
  spec.model.name = "mlp";
  EXPECT_THAT(base::Message(Validate(spec)), HasSubstr("spec.training.embeddings: needs a model with embedding"));
}

}  // namespace
}  // namespace medley::model
