// Tests that real jobs export the best model that they have seen, whatever the plan is and whatever is lost.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/slowed.h"
#include "worker/predict/predict.h"

namespace medley::worker::best_model_test {
namespace {

namespace pb = ::medley::job::v1;
using testing::HasSubstr;

// A column of 40 categories tells the label with noise. A second one is different in nearly every row, so a model with
// an embedding learns the training rows by heart, and gets worse on others from epoch to epoch.
void WriteRows(const std::filesystem::path& path, uint64_t seed, int rows) {
  base::Rng rng(seed);
  std::ofstream file(path);
  for (int row = 0; row < rows; ++row) {
    const uint64_t group = rng.Below(40);
    const bool likely = base::Mix64(group) % 2 == 0;
    const bool label = rng.Uniform() < (likely ? 0.75 : 0.25);
    file << fmt::format("{},g{},n{},{}\n", label ? 1 : 0, group, rng.Below(5000), rng.Below(10));
  }
}

class BestModelTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *base::MakeTempDir("best");
    WriteRows(folder_ / "train.csv", 1, 800);
    WriteRows(folder_ / "test.csv", 2, 400);
  }
  void TearDown() override { base::RemoveTempDir(folder_); }

  JobOptions Options(bool validation) const {
    JobOptions options;
    options.train = (folder_ / "train.csv").string();
    options.test = (folder_ / "test.csv").string();
    options.hidden = {16, 8};
    options.epochs = 12;
    options.batch_size = 50;
    options.optimizer = "adam";
    options.learning_rate = 0.02;
    options.schema = R"({"label": {"column": 0}, "categorical": [1, 2], "numeric": [3]})";
    options.training_json =
        R"(, "evaluation": {"everyEpochs": 1}, "earlyStopping": {"metric": "logLoss", "patience": 4})";
    if (validation) options.data_json = R"(, "validation": {"fraction": 0.25, "seed": 3})";
    return options;
  }

  // What `medley evaluate` measures of the exported model on the test data is what the job has reported.
  void CheckExport(JobHarness& job, const pb::Observation& end) {
    ASSERT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
    EXPECT_TRUE(end.stopped_early());
    int64_t best = 0;
    double least = 1e9;
    for (const pb::EvaluationRecord& record : end.evaluations()) {
      if (record.metrics().at("logLoss") >= least) continue;
      least = record.metrics().at("logLoss");
      best = record.step();
    }
    EXPECT_LT(best, end.step()) << "the job must get worse at its end";
    EXPECT_EQ(end.best().step(), best);
    EXPECT_EQ(end.best().value(), least);
    EXPECT_EQ(end.exported().step(), best);
    EXPECT_TRUE(end.exported().best());
    const std::filesystem::path folder = job.checkpoints() / "export";
    const auto model = ReadExport(folder);
    ASSERT_THAT(model, base::IsOk()) << job.AllLogs();
    const auto text = base::ReadFile(folder_ / "test.csv");
    size_t at = 0;
    const auto read = [&](char* to, size_t bytes) -> absl::StatusOr<size_t> {
      const size_t n = text->copy(to, bytes, at);
      at += n;
      return n;
    };
    const auto quality = EvaluateQuality(*model, {{"test.csv", read}});
    ASSERT_THAT(quality, base::IsOk());
    for (const char* name : {"auc", "logLoss", "accuracy"}) {
      EXPECT_NEAR(quality->metrics.at(name), end.metrics().at(name), 1e-5) << name;
    }
    EXPECT_EQ(end.metrics().at("test_samples"), 400);
    const std::string card = base::ReadFile(folder / "README.md").value_or("");
    EXPECT_THAT(card, HasSubstr(fmt::format("The best of the models that were evaluated, of step {}", best)));
    // Two newest checkpoints, and the best.
    int folders = 0;
    for (const auto& entry : std::filesystem::directory_iterator(job.checkpoints())) {
      folders += entry.path().filename().string().starts_with("step-") ? 1 : 0;
    }
    EXPECT_LE(folders, 3);
  }

  std::filesystem::path folder_;
};

// The split and the choice do not depend on the plan: rows, evaluations and the exported step are the same.
TEST_F(BestModelTest, PlansExportTheSameModel) {
  JobOptions options = Options(true);
  options.keep = 2;
  pb::Observation ends[2];
  const JobShape shapes[] = {{.stages = {{0, 5, 1}}, .micro_batches = 2},
                             {.stages = {{0, 1, 2}, {1, 5, 2}}, .servers = 2, .micro_batches = 2}};
  for (int i = 0; i < 2; ++i) {
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply(shapes[i], "start");
    ends[i] = job.WaitForEnd(base::seconds(120));
    CheckExport(job, ends[i]);
    if (HasFatalFailure()) return;
    EXPECT_EQ(ends[i].best().data(), pb::EVALUATION_DATA_VALIDATION);
    EXPECT_NEAR(ends[i].best().metrics().at("validation_samples"), 200, 40);
    EXPECT_LT(ends[i].samples_total(), 12 * 650) << "rows for validation are not trained on";
    EXPECT_EQ(ends[i].switches_size(), 0);
    const JobHistory history = job.History();
    EXPECT_EQ(std::ssize(history.losses), ends[i].step()) << "each step once";
  }
  EXPECT_EQ(ends[0].exported().step(), ends[1].exported().step());
  EXPECT_EQ(ends[0].samples_total(), ends[1].samples_total());
  EXPECT_EQ(ends[0].best().metrics().at("validation_samples"), ends[1].best().metrics().at("validation_samples"));
  for (const char* name : {"auc", "logLoss"}) {
    EXPECT_NEAR(ends[0].metrics().at(name), ends[1].metrics().at(name), 1e-3) << name;
    EXPECT_NEAR(ends[0].best().metrics().at(name), ends[1].best().metrics().at(name), 1e-3) << name;
  }
}

// After the best evaluation every process is killed, one after the other, with all that they held.
TEST_F(BestModelTest, ALossAfterTheBestEvaluationDoesNotLoseIt) {
  for (const bool validation : {true, false}) {
    JobOptions options = Options(validation);
    options.keep = 2;
    options.epochs = 30;
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply({.stages = {{0, 1, 1}, {1, 5, 1}}, .servers = 1, .micro_batches = 2}, "start");
    {
      const Slowed held(job, "t0-0");  // the job does not stop before the kills
      const pb::Observation seen =
          job.WaitFor([](const pb::Observation& o) { return o.best().step() > 0; }, base::seconds(60));
      ASSERT_FALSE(IsOver(seen)) << seen.ShortDebugString();
    }
    for (const char* name : {"coordinator", "t0-0", "t1-0", "server-0"})
      job.Kill(name, name != std::string("coordinator"));
    job.StartCoordinator();
    CheckExport(job, job.WaitForEnd(base::seconds(120)));
    if (HasFatalFailure()) return;
  }
}

TEST_F(BestModelTest, TheLastModelIsExportedOnRequest) {
  JobOptions options = Options(true);
  options.spec_fields_json = R"(, "export": "Last")";
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply({.stages = {{0, 5, 1}}, .micro_batches = 2}, "start");
  const pb::Observation end = job.WaitForEnd(base::seconds(120));
  ASSERT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
  EXPECT_EQ(end.exported().step(), end.step());
  EXPECT_FALSE(end.exported().best());
  EXPECT_FALSE(end.has_best());
  EXPECT_EQ(end.metrics().at("test_samples"), 400);
  EXPECT_THAT(base::ReadFile(job.checkpoints() / "export" / "README.md").value_or(""),
              HasSubstr("The last model of the training"));
}

}  // namespace
}  // namespace medley::worker::best_model_test
