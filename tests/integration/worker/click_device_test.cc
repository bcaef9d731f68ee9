// A click model trained by real processes, some of which compute on the test device: the losses of the CPU, with the
// rows of its table at every place, with replicas, and while its layers move to the device and back; and, to the bit,
// the losses of the same device where rows are cached or asked for ahead.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/base/file.h"
#include "tests/integration/worker/small_job.h"
#include "tests/integration/worker/train_job.h"

namespace medley::worker {
namespace {

constexpr double kMost = 1e-4;

// A census of 32,561 people, in 64 steps: embedding | fc1 | fc2 | fc_out | loss.
JobOptions Census(int epochs = 1) {
  JobOptions options;
  options.train = ExampleData("adult.train.csv");
  options.batch_size = 512;
  options.hidden = {64, 32};
  options.embedding_dim = 8;
  options.learning_rate = 0.01;
  options.epochs = epochs;
  return options;
}

StageShape On(const std::string& pool, int first, int end, int units = 1) {
  return {.first = first, .end = end, .units = units, .pool = pool};
}

class ClickDeviceTest : public ::testing::Test {
 protected:
  // The programs of these jobs are guarded_worker.cc's.
  static void SetUpTestSuite() {
    const char* const bin = std::getenv("MEDLEY_BIN_DIR");
    const std::string programs = std::string(bin == nullptr ? "build/bin" : bin) + "/../tests/guarded";
    ASSERT_EQ(setenv("MEDLEY_BIN_DIR", programs.c_str(), 1), 0);
  }

  static void ExpectLossesOfTheCpu(const JobOptions& options, const JobShape& on_device, const char* what) {
    JobShape on_cpu = on_device;
    for (StageShape& stage : on_cpu.stages) stage.pool = "cpu";
    const Outcome expected = Train(options, on_cpu), found = Train(options, on_device);
    ASSERT_GE(found.losses.size(), 60U);
    const double losses = LargestDifference(expected, found), weights = WeightDifference(expected, found);
    EXPECT_LE(losses, kMost);
    EXPECT_LE(weights, kMost);
    std::printf("%s: largest relative difference of %zu losses %.1e, of weights %.1e\n", what, found.losses.size(),
                losses, weights);
  }
};

TEST_F(ClickDeviceTest, TheWholeModelIsOnTheDevice) {
  ExpectLossesOfTheCpu(Census(), {.stages = {On("device", 0, 5)}}, "one process");
}

TEST_F(ClickDeviceTest, RowsAreOnParameterServers) {
  JobOptions options = Census();
  options.optimizer = "adam";
  options.learning_rate = 0.001;
  ExpectLossesOfTheCpu(options, {.stages = {On("device", 0, 5, 2)}, .servers = 2}, "two replicas and two servers");
}

// They are asked for, and copied to the device, while the step before is computed.
TEST_F(ClickDeviceTest, RowsAreOnParameterServersAndComeAhead) {
  const JobShape shape = {.stages = {On("device", 0, 1, 2), On("device", 1, 5)}, .servers = 2};
  JobOptions options = Census();
  options.environment = {"MEDLEY_ROWS_AHEAD=0"};
  const Outcome expected = Train(options, shape);
  options.environment = {"MEDLEY_ROWS_AHEAD=1"};
  const Outcome found = Train(options, shape);
  EXPECT_EQ(found.losses, expected.losses);
  EXPECT_EQ(found.weights, expected.weights);
}

// A census whose table has thousands of rows in use, more than the device has room for.
JobOptions LargeCensus(int epochs = 1) {
  JobOptions options = Census(epochs);
  options.schema = R"({"label": {"column": 14, "positive": ">50K"}, "categorical": [1, 2, 3, 5, 6, 7, 8, 9, 13],
                       "numeric": [0, 4, 10, 11, 12]})";
  options.environment = {"MEDLEY_TEST_DEVICE_BYTES=300000"};
  return options;
}

TEST_F(ClickDeviceTest, RowsThatAreUsedOftenAreCached) {
  JobOptions options = LargeCensus();
  const Outcome found = Train(options, {.stages = {On("device", 0, 5)}});
  options.environment = {};
  const Outcome expected = Train(options, {.stages = {On("device", 0, 5)}});
  EXPECT_EQ(found.losses, expected.losses);
  EXPECT_EQ(found.weights, expected.weights);
}

StageShape With(plan::v1::TablePlace place, int64_t cache_bytes = 0) {
  StageShape stage = On("device", 0, 5);
  stage.tables.set_place(place);
  stage.tables.set_cache_bytes(cache_bytes);
  return stage;
}

// A trainer has the tables where its plan says, and reports what its steps found there. The losses are the same.
TEST_F(ClickDeviceTest, TablesAreWhereThePlanSays) {
  JobOptions options = LargeCensus();
  options.environment = {};
  const Outcome whole = Train(options, {.stages = {With(plan::v1::TABLE_PLACE_DEVICE)}});
  EXPECT_EQ(whole.end.device_tables().place(), plan::v1::TABLE_PLACE_DEVICE);
  EXPECT_GT(whole.end.device_tables().used_rows(), 0);
  EXPECT_EQ(whole.end.device_tables().found_rows(), whole.end.device_tables().used_rows());
  EXPECT_EQ(whole.end.device_tables().bytes_in(), 0);
  const Outcome cached = Train(options, {.stages = {With(plan::v1::TABLE_PLACE_CACHE, 120'000)}});
  EXPECT_EQ(cached.end.device_tables().place(), plan::v1::TABLE_PLACE_CACHE);
  EXPECT_GT(cached.end.device_tables().found_rows(), 0);
  EXPECT_LT(cached.end.device_tables().found_rows(), cached.end.device_tables().used_rows());
  EXPECT_GT(cached.end.device_tables().bytes_in(), cached.end.device_tables().bytes_out());
  const Outcome host = Train(options, {.stages = {With(plan::v1::TABLE_PLACE_HOST)}});
  EXPECT_EQ(host.end.device_tables().place(), plan::v1::TABLE_PLACE_HOST);
  EXPECT_EQ(host.end.device_tables().found_rows(), 0);
  EXPECT_GT(host.end.device_tables().bytes_in(), cached.end.device_tables().bytes_in());
  for (const Outcome* run : {&whole, &cached, &host}) EXPECT_EQ(run->end.device_tables().instead(), "");
  EXPECT_EQ(cached.losses, whole.losses);
  EXPECT_LE(LargestDifference(whole, host), kMost);
}

// The plan expects more memory than the device has: the job trains, and says that it is not as planned.
TEST_F(ClickDeviceTest, ATrainerSaysThatItsTablesDoNotFit) {
  const Outcome found = Train(LargeCensus(), {.stages = {With(plan::v1::TABLE_PLACE_DEVICE)}});
  EXPECT_EQ(found.end.device_tables().place(), plan::v1::TABLE_PLACE_CACHE);
  EXPECT_NE(found.end.device_tables().instead().find("The plan has embedding tables of "), std::string::npos)
      << found.end.device_tables().instead();
}

TEST_F(ClickDeviceTest, RowsAreInTrainers) {
  ExpectLossesOfTheCpu(Census(), {.stages = {On("device", 0, 1, 2), On("device", 1, 5)}, .rows_in_trainers = true},
                       "shards in two trainers");
}

TEST_F(ClickDeviceTest, StagesOfCpusAndOfTheDeviceTrainTogether) {
  JobOptions options = Census();
  options.optimizer = "sgd";
  options.learning_rate = 0.1;
  ExpectLossesOfTheCpu(options, {.stages = {On("cpu", 0, 1, 2), On("device", 1, 3, 2), On("cpu", 3, 5)}, .servers = 1},
                       "three stages");
}

// `middle` from step 20 on, then `first` again.
void ExpectLossesAcrossMoves(const JobOptions& options, const JobShape& first, const JobShape& middle,
                             const char* logged = "") {
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply(first, "start");
  job.WaitFor(Reached(20), base::seconds(120));
  ASSERT_FALSE(IsOver(Switch(job, middle, "move"))) << "the job is too short";
  ASSERT_FALSE(IsOver(Switch(job, first, "move back"))) << "the job is too short";
  const job::v1::Observation end = job.WaitForEnd(base::seconds(240));
  ASSERT_EQ(end.phase(), job::v1::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
  EXPECT_EQ(end.samples_done(), end.samples_total());
  EXPECT_NE(job.AllLogs().find(logged), std::string::npos) << logged;
  Outcome moved;
  moved.losses = job.Losses();
  const Outcome expected = Train(options, {.stages = {On("cpu", 0, 5)}});
  const double difference = LargestDifference(expected, moved);
  EXPECT_LE(difference, kMost);
  std::printf("largest relative difference of %zu losses across two moves: %.1e\n", moved.losses.size(), difference);
}

TEST_F(ClickDeviceTest, LayersMoveToTheDeviceAndBack) {
  ExpectLossesAcrossMoves(Census(4), {.stages = {On("cpu", 0, 5)}}, {.stages = {On("cpu", 0, 1), On("device", 1, 5)}});
}

TEST_F(ClickDeviceTest, LayersLeaveTheDeviceAndComeBack) {
  ExpectLossesAcrossMoves(Census(4), {.stages = {On("device", 0, 5)}},
                          {.stages = {On("device", 0, 1), On("cpu", 1, 5)}});
}

// All rows return to the host, and the cache of another block begins empty.
TEST_F(ClickDeviceTest, ACacheIsMadeAgainAcrossMoves) {
  ExpectLossesAcrossMoves(LargeCensus(4), {.stages = {On("device", 0, 5)}},
                          {.stages = {On("device", 0, 1), On("cpu", 1, 5)}},
                          "rows that are used often in the device's");
}

// Through a checkpoint, as the forms differ; no step is lost.
TEST_F(ClickDeviceTest, TablesMoveFromTheDeviceToServersAndBack) {
  ExpectLossesAcrossMoves(Census(4), {.stages = {With(plan::v1::TABLE_PLACE_DEVICE)}},
                          {.stages = {On("device", 0, 5, 2)}, .servers = 2}, "in the memory of the device");
}

TEST_F(ClickDeviceTest, TablesMoveFromServersToTheDeviceAndBack) {
  ExpectLossesAcrossMoves(Census(4), {.stages = {On("device", 0, 1), On("device", 1, 5)}, .servers = 1},
                          {.stages = {With(plan::v1::TABLE_PLACE_DEVICE)}}, "in the memory of the device");
}

}  // namespace
}  // namespace medley::worker
