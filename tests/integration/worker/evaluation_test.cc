// Evaluations between two steps read the state and change nothing: the parameters at the end are the same bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/base/file.h"
#include "medley/tensorboard/v1/event.pb.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/slowed.h"
#include "worker/checkpoint/reader.h"
#include "worker/coordinator/server/tensor_board.h"

namespace medley::worker::evaluation_test {
namespace {

namespace pb = ::medley::job::v1;
using Bits = std::vector<uint32_t>;
using Json = nlohmann::json;

Bits BitsOf(std::span<const float> values) {
  Bits bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size_bytes());
  return bits;
}

// The state of a checkpoint: dense parameters with their optimizer state, and rows by table and key.
struct State {
  std::map<std::pair<int32_t, std::string>, std::pair<Bits, Bits>> dense;
  std::map<std::pair<int32_t, uint64_t>, Bits> rows;
};

State ReadState(const std::filesystem::path& checkpoints) {
  State state;
  const Volume volume(checkpoints);
  const auto found = FindCheckpoint(volume, "", "");
  if (!found.ok() || !found->manifest) {
    ADD_FAILURE() << "no checkpoint in " << checkpoints;
    return state;
  }
  CheckpointHandlers handlers;
  handlers.dense = [&](int32_t operation, std::string_view name, std::span<const float> weights,
                       std::span<const float> optimizer) {
    state.dense[{operation, std::string(name)}] = {BitsOf(weights), BitsOf(optimizer)};
    return absl::OkStatus();
  };
  handlers.rows = [&](int32_t table, int32_t width, std::span<const uint64_t> keys, std::span<const float> values) {
    for (size_t i = 0; i < keys.size(); ++i) {
      state.rows[{table, keys[i]}] = BitsOf(values.subspan(i * static_cast<size_t>(width), static_cast<size_t>(width)));
    }
    return absl::OkStatus();
  };
  const absl::Status read = ReadCheckpoint(volume, *found->manifest, std::move(handlers));
  EXPECT_TRUE(read.ok()) << read;
  return state;
}

std::vector<Json> Lines(const std::filesystem::path& path) {
  std::vector<Json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

// The events of all files, in the order in which TensorBoard reads them.
std::vector<tensorboard::v1::Event> Events(const std::filesystem::path& folder) {
  std::set<std::filesystem::path> paths;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(folder, absent)) paths.insert(entry.path());
  std::vector<tensorboard::v1::Event> events;
  for (const std::filesystem::path& path : paths) {
    const std::string file = base::ReadFile(path).value();
    for (size_t at = 0; at + 16 <= file.size();) {
      uint64_t length = 0;
      std::memcpy(&length, file.data() + at, sizeof length);
      EXPECT_TRUE(events.emplace_back().ParseFromString(file.substr(at + 12, length)));
      at += length + 16;
    }
  }
  return events;
}

struct Outcome {
  pb::Observation end;
  State state;
  std::vector<double> losses;
  std::vector<Json> evaluations;  // the lines of metrics.jsonl
  std::string log;                // training.log of the model
  std::vector<tensorboard::v1::Event> events;
};

class EvaluationTest : public testing::Test {
 protected:
  static JobOptions Options(const JobHarness& data) {
    JobOptions options;
    options.train = (data.folder() / "train.csv").string();
    options.test = (data.folder() / "test.csv").string();
    options.epochs = 3;
    options.batch_size = 100;
    return options;
  }
  Outcome Train(const JobOptions& options, bool restart = false) {
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply({.stages = {{0, 1, 1}, {1, job.operations(), 1}}, .servers = 2}, "start");
    if (restart) {
      const Slowed slowed(job, "t0-0");  // the job does not end before
      const pb::Observation seen =
          job.WaitFor([](const pb::Observation& o) { return o.step() >= 5; }, base::seconds(60));
      EXPECT_FALSE(IsOver(seen)) << "the job is too short";
      job.Kill("coordinator");
      job.StartCoordinator();
    }
    Outcome run;
    run.end = job.WaitForEnd(base::seconds(120));
    EXPECT_EQ(run.end.phase(), pb::JOB_PHASE_COMPLETE) << run.end.message() << job.AllLogs();
    run.state = ReadState(job.checkpoints());
    run.losses = job.Losses();
    run.evaluations = Lines(job.checkpoints() / "metrics.jsonl");
    run.log = base::ReadFile(job.checkpoints() / "export" / "training.log").value_or("");
    run.events = Events(job.checkpoints() / kTensorBoardFolder);
    return run;
  }
  JobHarness data_{JobOptions()};  // for its folder
};

// Adam, with a coordinator that is killed and started again: it ends as if that had not happened, and the folder tells
// all of it.
TEST_F(EvaluationTest, TheFolderKeepsTheCurveAndTheLog) {
  CopyLines(ExampleData("adult.train.csv"), data_.folder() / "train.csv", 1000);
  CopyLines(ExampleData("adult.test.csv"), data_.folder() / "test.csv", 500);
  JobOptions options = Options(data_);
  options.optimizer = "adam";
  options.learning_rate = 0.001;
  options.training_json = R"(, "evaluation": {"everyEpochs": 1}, "tensorBoard": true)";
  const Outcome whole = Train(options);
  const Outcome restarted = Train(options, true);
  EXPECT_FALSE(whole.state.rows.empty());
  EXPECT_EQ(whole.state.dense, restarted.state.dense);
  EXPECT_EQ(whole.state.rows, restarted.state.rows);
  for (const char* part :
       {"trained epoch 1/3 at step 10 of 30: training loss 0.", "evaluated at step 10 of 30, epoch"}) {
    EXPECT_NE(whole.log.find(part), std::string::npos) << part << "\n" << whole.log;
  }
  EXPECT_NE(restarted.log.find("the coordinator restarted"), std::string::npos) << restarted.log;
  for (const Outcome* run : {&whole, &restarted}) {
    EXPECT_NE(run->log.find("trained epoch 3/3"), std::string::npos) << run->log;
    EXPECT_NE(run->log.find("evaluated at step 30 of 30"), std::string::npos) << run->log;
    std::map<std::string, std::map<int64_t, float>> curves;
    int starts = 0;
    for (const tensorboard::v1::Event& event : run->events) {
      starts += event.has_session_log() ? 1 : 0;
      for (const tensorboard::v1::Value& value : event.summary().values()) {
        curves[value.tag()][event.step()] = value.simple_value();
      }
    }
    EXPECT_GE(starts, run == &whole ? 1 : 2);
    const auto& auc = curves["validation/auc"];
    EXPECT_GE(auc.size(), run == &whole ? 3U : 2U) << "the killed process may lack its last one";
    for (const Json& line : run->evaluations) {
      if (!line.contains("metrics") || !auc.contains(line["step"].get<int64_t>())) continue;
      EXPECT_FLOAT_EQ(auc.at(line["step"].get<int64_t>()), line["metrics"]["auc"].get<float>());
    }
    EXPECT_TRUE(curves["training/loss"].contains(30));
    EXPECT_FLOAT_EQ(curves["training/learning_rate"][30], 0.001F);
  }
}

TEST_F(EvaluationTest, TheParametersAreTheSameBitForBit) {
  CopyLines(ExampleData("adult.train.csv"), data_.folder() / "train.csv", 1000);
  CopyLines(ExampleData("adult.test.csv"), data_.folder() / "test.csv", 500);
  JobOptions options = Options(data_);
  options.spec_fields_json = R"(, "export": "Last")";  // the best model of the evaluations is another one
  const Outcome without = Train(options);
  options.training_json = R"(, "evaluation": {"everySteps": 4})";
  const Outcome with = Train(options);

  EXPECT_EQ(without.losses, with.losses);
  ASSERT_EQ(without.losses.size(), 30);
  EXPECT_FALSE(without.state.dense.empty());
  EXPECT_TRUE(without.state.dense == with.state.dense);
  // An evaluation also creates the rows that only the test data have. They keep their initial values.
  ASSERT_FALSE(without.state.rows.empty());
  for (const auto& [key, row] : without.state.rows) {
    const auto other = with.state.rows.find(key);
    ASSERT_NE(other, with.state.rows.end());
    ASSERT_TRUE(row == other->second) << "table " << key.first << ", row " << key.second;
  }

  EXPECT_EQ(without.evaluations.size(), 1);
  ASSERT_EQ(with.evaluations.size(), 8);  // steps 4 to 28, and the end
  ASSERT_EQ(with.end.evaluations_size(), 8);
  for (int i = 0; i < 8; ++i) {
    const pb::EvaluationRecord& record = with.end.evaluations(i);
    const Json& line = with.evaluations[static_cast<size_t>(i)];
    EXPECT_EQ(record.step(), i == 7 ? 30 : 4 * (i + 1));
    EXPECT_EQ(line["step"], record.step());
    EXPECT_EQ(line["metrics"]["auc"], record.metrics().at("auc"));
    EXPECT_EQ(record.metrics().at("test_samples"), 500);
    const auto first = static_cast<size_t>(i == 0 ? 0 : with.end.evaluations(i - 1).step());
    double sum = 0;
    for (size_t step = first; step < static_cast<size_t>(record.step()); ++step) sum += with.losses[step];
    EXPECT_NEAR(record.loss(), sum / static_cast<double>(static_cast<size_t>(record.step()) - first), 1e-6);
  }
  EXPECT_EQ(with.end.metrics().at("auc"), without.end.metrics().at("auc"));
  EXPECT_EQ(with.end.metrics().at("logLoss"), without.end.metrics().at("logLoss"));
}

// The learning rate belongs to the step: neither a recovery nor more processes change it.
TEST_F(EvaluationTest, AScheduleOfTheLearningRateIsTheSameAfterARecovery) {
  CopyLines(ExampleData("adult.train.csv"), data_.folder() / "train.csv", 1000);
  CopyLines(ExampleData("adult.test.csv"), data_.folder() / "test.csv", 500);
  JobOptions options = Options(data_);
  options.epochs = 60;
  const Outcome constant = Train(options);
  options.schedule_json = R"({"kind": "cosine", "warmupSteps": 10, "steps": 500})";
  const Outcome reference = Train(options);
  const Outcome recovered = Train(options, /*restart=*/true);
  ASSERT_EQ(reference.losses.size(), 600);
  EXPECT_EQ(reference.losses[0], constant.losses[0]) << "of the state before the first update";
  EXPECT_NE(reference.losses[1], constant.losses[1]);
  EXPECT_TRUE(reference.state.dense == recovered.state.dense);
  EXPECT_TRUE(reference.state.rows == recovered.state.rows);
}

// No step of this job improves the AUC by 0.5, so the first value stays the best.
TEST_F(EvaluationTest, EarlyStoppingEndsAtTheSameStepWhateverIsLost) {
  CopyLines(ExampleData("adult.train.csv"), data_.folder() / "train.csv", 1000);
  CopyLines(ExampleData("adult.test.csv"), data_.folder() / "test.csv", 500);
  JobOptions options = Options(data_);
  options.epochs = 50;
  options.training_json =
      R"(, "evaluation": {"everyEpochs": 1}, "earlyStopping": {"metric": "auc", "patience": 20, "minDelta": 0.5})";
  JobHarness job(options);
  job.StartCoordinator();
  const JobShape shape{.stages = {{0, 1, 1}, {1, job.operations(), 2}}, .servers = 1};
  job.Apply(shape, "start");
  {
    const Slowed slowed(job, "t0-0");  // the job does not end before
    const pb::Observation seen =
        job.WaitFor([](const pb::Observation& o) { return o.evaluations_size() >= 2; }, base::seconds(60));
    EXPECT_FALSE(IsOver(seen)) << "the job is too short";
    job.Kill("coordinator");
    job.StartCoordinator();
  }
  const pb::Observation end = job.WaitForEnd(base::seconds(120));
  ASSERT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
  EXPECT_TRUE(end.stopped_early());
  EXPECT_EQ(end.step(), 210);
  EXPECT_EQ(end.samples_done(), 21000);
  EXPECT_EQ(end.evaluations_size(), 21);
  EXPECT_EQ(end.last_checkpoint_step(), 210);
  EXPECT_NE(end.message().find("stopped early at step 210: auc has not improved by more than 0.5 in 20 evaluations"),
            std::string::npos)
      << end.message();
  EXPECT_TRUE(std::filesystem::exists(job.checkpoints() / "export"));
}

}  // namespace
}  // namespace medley::worker::evaluation_test
