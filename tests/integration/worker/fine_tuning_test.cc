// Real processes that begin with the weights of an exported model (spec.model.initialFrom), in stages and with a model
// from PyTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/base/file.h"
#include "common/base/testing/temp_dir.h"
#include "tests/integration/worker/train_job.h"

namespace medley::worker::fine_tuning_test {
namespace {

using testing::HasSubstr;

class FineTuningTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("medley-fine-tuning"); }
  void TearDown() override { base::RemoveTempDir(folder_); }

  static JobOptions Adult() {
    JobOptions options;
    options.train = ExampleData("adult.train.csv");
    options.test = ExampleData("adult.test.csv");
    options.batch_size = 512;
    options.hidden = {16, 8};
    options.embedding_rows = 2048;
    return options;
  }
  static JobOptions FromPyTorch() {
    JobOptions options = Adult();
    const std::filesystem::path examples = ExampleData("").parent_path().parent_path();
    options.archive = (examples.parent_path() / "tests/data/exported/adult.pt2").string();
    options.model_json = R"(, "cut": {"depth": 2})";
    options.operations = 7;
    options.tables = {};
    options.embedding_rows = 512;
    options.optimizer = "sgd";
    options.learning_rate = 0.1;
    return options;
  }
  // Trains a model and keeps its export.
  job::v1::Observation MakeFirst(const JobOptions& options, const JobShape& shape) {
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply(shape, "start");
    const job::v1::Observation end = job.WaitForEnd(base::seconds(240));
    EXPECT_EQ(end.phase(), job::v1::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
    std::filesystem::copy(job.checkpoints() / "export", folder_ / "first", std::filesystem::copy_options::recursive);
    return end;
  }
  JobOptions From(JobOptions options) const {
    options.model_json += R"(, "initialFrom": ")" + (folder_ / "first").string() + "\"";
    return options;
  }
  // Trains on, at almost no rate and at a real one, under two plans, whose losses differ by less than `most`.
  void Compare(const JobOptions& options, const JobShape& one, const JobShape& several, double most) {
    const job::v1::Observation first = MakeFirst(options, one);
    const Outcome fresh = Train(options, several);
    JobOptions still = From(options);
    still.optimizer = "sgd";
    still.learning_rate = 1e-30;
    still.batch_size = 256;
    const Outcome same = Train(still, several);
    // All that began as the first model is still that.
    EXPECT_NEAR(same.end.metrics().at("auc"), first.metrics().at("auc"), 1e-6);
    EXPECT_NEAR(same.end.metrics().at("logLoss"), first.metrics().at("logLoss"), 1e-6);
    const Outcome alone = Train(From(options), one), divided = Train(From(options), several);
    EXPECT_LT(alone.losses.front(), 0.8 * fresh.losses.front()) << "it begins where the first one ended";
    const double begin = LargestDifference(alone, divided, /*steps=*/20), worst = LargestDifference(alone, divided);
    std::printf("largest relative difference of the loss: %.2e, in 20 steps %.2e\n", worst, begin);
    EXPECT_LT(begin, 1e-5);
    EXPECT_LT(worst, most);
  }
  void Refused(const JobOptions& options, const JobShape& shape, const std::string& words) {
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply(shape, "start");
    const job::v1::Observation end = job.WaitForEnd(base::seconds(240));
    EXPECT_EQ(end.phase(), job::v1::JOB_PHASE_FAILED);
    EXPECT_FALSE(end.retryable());
    EXPECT_THAT(end.message(), testing::AllOf(HasSubstr("spec.model.initialFrom: cannot begin with the weights of "),
                                              HasSubstr(words)));
  }

  std::filesystem::path folder_;
};

TEST_F(FineTuningTest, TwoStagesWithServersBeginWithTheWeightsOfAModel) {
  const JobShape one{.stages = {{.end = 5}}};
  const JobShape several{.stages = {{.end = 2, .units = 2}, {.first = 2, .end = 5}}, .servers = 2};
  Compare(Adult(), one, several, 1e-4);
  JobOptions other = From(Adult());
  other.hidden = {16, 4};
  Refused(other, several, "the shape of parameter fc2.weight is [16,8] in the export and [16,4] in this job");
}

TEST_F(FineTuningTest, AModelFromPyTorchBeginsWithTheWeightsOfAnExport) {
  const JobShape one{.stages = {{.end = 7}}};
  const JobShape several{.stages = {{.end = 3, .units = 2}, {.first = 3, .end = 7}}};
  Compare(FromPyTorch(), one, several, 1e-2);
  JobOptions other = From(FromPyTorch());
  other.schema = R"({"label": {"column": 14, "positive": "<=50K"}, "categorical": [1, 3, 5, 6, 7, 8, 9, 13],
                     "numeric": [0, 2, 4, 10, 11, 12]})";
  Refused(other, several, R"(label.positive is ">50K" in the export and "<=50K" in this job)");
}

}  // namespace
}  // namespace medley::worker::fine_tuning_test
