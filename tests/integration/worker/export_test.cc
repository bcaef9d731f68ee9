// A job's exported model computes what the job's own evaluation computed.
#include <gmock/gmock.h>

#include <fstream>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/train_job.h"
#include "worker/export/read_export.h"
#include "worker/predict/predict.h"

namespace medley::worker::export_test {
namespace {

namespace pb = ::medley::job::v1;
using testing::HasSubstr;

constexpr int kRows = 1600;

class ExportTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("worker-export-test"); }
  void TearDown() override { base::RemoveTempDir(folder_); }

  JobOptions Options() {
    JobOptions options;
    options.train = (folder_ / "train.csv").string();
    options.test = (folder_ / "test.csv").string();
    CopyLines(ExampleData("adult.train.csv"), options.train, kRows);
    CopyLines(ExampleData("adult.test.csv"), options.test, kRows / 2);
    options.hidden = {16, 8};
    options.schema = R"({"label": {"column": 14, "positive": ">50K"}, "categorical": [1, 3, 5, 6, 7, 8, 9, 13],
                         "numeric": [0, 2, 4, 10, 11, 12], "numericBuckets": 8})";
    return options;
  }

  // Runs a job to its end and compares its metrics with those of its model.
  void RunAndCompare(const JobShape& shape) {
    const JobOptions options = Options();
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply(shape, "start");
    const pb::Observation end = job.WaitForEnd(base::seconds(120));
    ASSERT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
    const std::filesystem::path folder = job.checkpoints() / "export";
    const auto model = ReadExport(folder);
    ASSERT_THAT(model, base::IsOk()) << job.AllLogs();
    const auto text = base::ReadFile(options.test);
    size_t at = 0;
    const auto read = [&](char* to, size_t bytes) -> absl::StatusOr<size_t> {
      const size_t n = text->copy(to, bytes, at);
      at += n;
      return n;
    };
    const auto quality = EvaluateQuality(*model, {{"test.csv", read}});
    ASSERT_THAT(quality, base::IsOk());
    EXPECT_EQ(static_cast<double>(quality->rows), end.metrics().at("test_samples"));
    for (const char* name : {"auc", "logLoss", "accuracy"}) {
      EXPECT_NEAR(quality->metrics.at(name), end.metrics().at(name), 1e-5) << name;
    }
    EXPECT_THAT(base::ReadFile(folder / "README.md").value_or(""),
                HasSubstr(fmt::format("| auc | {:.4f} |", end.metrics().at("auc"))));
  }

  std::filesystem::path folder_;
};

TEST_F(ExportTest, TheModelOfOneTrainerComputesWhatTheJobReported) {
  RunAndCompare({.stages = {{0, 5, 1}}, .servers = 0, .micro_batches = 2});
}

// Gradients of a model that is sure of an answer may be too small for a normal number, and processors compute with such
// numbers several times as slowly. Here all updates are that small: weights that begin as zero stay zero, in trainers
// and on servers.
TEST_F(ExportTest, NumbersThatAreTooSmallAreZero) {
  JobOptions options = Options();
  options.model = "logistic";
  options.hidden = {};
  options.optimizer = "sgd";
  options.learning_rate = 2e-38;
  for (const int servers : {0, 1}) {
    const Outcome run = Train(options, {.stages = {{0, 3, 1}}, .servers = servers, .micro_batches = 1});
    ASSERT_FALSE(run.weights.empty());
    EXPECT_EQ(std::ranges::count_if(run.weights, [](float w) { return std::fpclassify(w) == FP_SUBNORMAL; }), 0)
        << servers << " servers";
  }
}

TEST_F(ExportTest, TheModelOfTwoStagesWithParameterServersComputesWhatTheJobReported) {
  RunAndCompare({.stages = {{0, 1, 2}, {1, 5, 1}}, .servers = 2, .micro_batches = 2});
}

}  // namespace
}  // namespace medley::worker::export_test
