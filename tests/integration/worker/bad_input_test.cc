// Tests how a job handles bad data and damaged files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/temp_dir.h"
#include "common/base/utf8.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"

namespace medley::worker::bad_input_test {
namespace {

namespace pb = ::medley::job::v1;

class BadInputTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *base::MakeTempDir("medley-bad-input");
    data_ = folder_ / "train.csv";
    CopyLines(ExampleData("adult.train.csv"), data_, 640);
  }
  void TearDown() override { base::RemoveTempDir(folder_); }
  JobOptions Options() const {
    JobOptions options = SmallJob(data_, 1);
    options.checkpoint_interval = "3600s";
    return options;
  }
  // The end of a job that must fail for good, without a recovery.
  pb::Observation Failed(const JobOptions& options) const {
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply(shape_, "start");
    const pb::Observation end = job.WaitForEnd();
    EXPECT_EQ(end.phase(), pb::JOB_PHASE_FAILED);
    EXPECT_FALSE(end.retryable());
    EXPECT_EQ(end.switches_size(), 0) << end.message();
    return end;
  }
  const JobShape shape_{.stages = {{0, 1, 1}, {1, 4, 1}}, .servers = 1, .micro_batches = 2};
  std::filesystem::path folder_;
  std::filesystem::path data_;
};

TEST_F(BadInputTest, AMalformedRowFailsTheJobWithFileAndLine) {
  std::ofstream(data_, std::ios::app) << "39, State-gov, not-a-number\n";
  const pb::Observation end = Failed(Options());
  EXPECT_THAT(end.message(), testing::HasSubstr(data_.string() + ":641"));
}

TEST_F(BadInputTest, AMalformedRowWithinMaxBadRowsIsCounted) {
  std::ofstream(data_, std::ios::app) << "39, State-gov, not-a-number\n";
  JobOptions options = Options();
  options.max_bad_rows = 1;
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply(shape_, "start");
  const pb::Observation end = job.WaitForEnd();
  EXPECT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
  EXPECT_EQ(end.bad_rows(), 1);
  EXPECT_EQ(end.samples_done(), 640);
}

// 32 MiB of text and their rows, a process that may use 48 MiB, of which it uses 15 before it reads, and no disk for
// the rows: without the estimate it would be killed while it reads, again and again.
TEST_F(BadInputTest, DataThatCannotFitIntoTheMemoryAreRefusedBeforeTheyAreRead) {
  const std::string rows = *base::ReadFile(data_);
  for (size_t bytes = rows.size(); bytes < size_t{32} << 20; bytes += rows.size()) {
    std::ofstream(data_, std::ios::app) << rows;
  }
  JobOptions options = Options();
  options.memory_limit = int64_t{48} << 20;
  options.samples_folder = data_.string() + "/samples";
  const auto refused = testing::AllOf(testing::HasSubstr("the training data ("), testing::HasSubstr("may use 48 MiB"),
                                      testing::HasSubstr("give a unit of the pool more memory"));
  JobHarness job(options);
  const auto profiled = job.RunProfiler("cpu");
  EXPECT_THAT(std::string(profiled.status().message()),
              testing::AllOf(testing::HasSubstr("ended with 2"), refused));  // the operator does not try again
  job.StartCoordinator();
  job.Apply(shape_, "start");
  const pb::Observation end = job.WaitForEnd();
  EXPECT_EQ(end.phase(), pb::JOB_PHASE_FAILED);
  EXPECT_FALSE(end.retryable());
  EXPECT_THAT(end.message(), refused);
}

TEST_F(BadInputTest, DataThatFitIntoTheMemoryAreTrained) {
  JobOptions options = Options();
  options.memory_limit = int64_t{1} << 30;
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply(shape_, "start");
  EXPECT_EQ(job.WaitForEnd().phase(), pb::JOB_PHASE_COMPLETE) << job.AllLogs();
}

// A message that quoted such a value could not be parsed: the job broke its session and recovered without end.
TEST_F(BadInputTest, ABadValueOfTheTestDataMayHaveAnyEncoding) {
  for (const std::string value : {"l\xe4nge", "\xed\xa0\x80", "length"}) {
    const auto test = folder_ / "test.csv";
    CopyLines(ExampleData("adult.test.csv"), test, 500);
    std::ofstream(test, std::ios::app) << value
                                       << ", State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, "
                                          "Not-in-family, White, Male, 2174, 0, 40, United-States, <=50K\n";
    JobOptions options = Options();
    options.test = test;
    const pb::Observation end = Failed(options);
    EXPECT_THAT(end.message(), testing::HasSubstr(test.string() + ":501"));
    EXPECT_THAT(end.message(), testing::HasSubstr(base::EscapeInvalidUtf8(value)));
  }
}

// The message quoted the whole value: it was too large to be sent, and the job recovered without end.
TEST_F(BadInputTest, AnEndlessLineOrValueFailsTheJobWithAShortReason) {
  for (const size_t bytes : {size_t{70} << 20, size_t{8} << 20}) {
    std::ofstream(data_, std::ios::app) << std::string(bytes, 'x') << "\n";
    const pb::Observation end = Failed(Options());
    EXPECT_THAT(end.message(), testing::HasSubstr(data_.string() + ":"));
    EXPECT_LT(end.message().size(), 1000u);
    CopyLines(ExampleData("adult.train.csv"), data_, 640);
  }
}

// Whatever bytes a table has, its job ends, and every reason can be read.
TEST_F(BadInputTest, RandomBytesEndTheJobWithAResultOrAReason) {
  const std::string good = *base::ReadFile(data_);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Rng rng(seed);
    std::string bytes = good;
    for (uint64_t i = 0; i < 1 + 3 * seed; ++i) bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Below(256));
    const auto test = folder_ / "test.csv";
    std::ofstream(test, std::ios::binary) << bytes;
    if (seed % 2 == 0) std::ofstream(data_, std::ios::binary) << bytes;
    JobOptions options = Options();
    options.test = test;
    options.max_bad_rows = seed % 3 == 0 ? 100 : 0;
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply(shape_, "start");
    const pb::Observation end = job.WaitForEnd();
    EXPECT_EQ(end.switches_size(), 0) << end.message();
    EXPECT_TRUE(end.phase() == pb::JOB_PHASE_COMPLETE || (end.phase() == pb::JOB_PHASE_FAILED && !end.retryable()))
        << end.message();
    std::printf("seed %d: %s: %s\n", static_cast<int>(seed), pb::JobPhase_Name(end.phase()).c_str(),
                end.message().c_str());
  }
}

TEST_F(BadInputTest, AMissingFileFailsTheJobWithItsName) {
  JobOptions options = Options();
  options.train = "/nowhere/train.csv";
  const pb::Observation end = Failed(options);
  EXPECT_THAT(end.message(), testing::HasSubstr("/nowhere/train.csv"));
}

// Issue 12: the job ended Complete with a log loss of 0.
TEST_F(BadInputTest, APositiveLabelThatNeverOccursFailsTheJobBeforeTheFirstStep) {
  JobOptions options = Options();
  options.schema = R"({"label": {"column": 14, "positive": ">50k"}, "categorical": [1], "numeric": [0]})";
  const pb::Observation end = Failed(options);
  EXPECT_EQ(end.step(), 0);
  EXPECT_THAT(end.message(), testing::HasSubstr(data_.string() + ": the label in column 14 is never \">50k\""));
  EXPECT_THAT(end.message(), testing::HasSubstr("\"<=50K\" ("));
}

TEST_F(BadInputTest, TestDataOfOneClassFailTheJobBeforeTheFirstStep) {
  const auto test = folder_ / "test.csv";
  std::ofstream(test)
      << "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, "
         "2174, 0, 40, United-States, <=50K\n";
  JobOptions options = Options();
  options.test = test;
  const pb::Observation end = Failed(options);
  EXPECT_EQ(end.step(), 0);
  EXPECT_THAT(end.message(), testing::HasSubstr(test.string() + ": the label in column 14 is never \">50K\""));
}

TEST_F(BadInputTest, ACorruptCheckpointIsSkipped) {
  JobOptions options = Options();
  options.epochs = 150;
  options.checkpoint_interval = "1s";
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply(shape_, "start");
  std::set<int64_t> written;
  job.WaitFor(
      [&](const pb::Observation& o) {
        if (o.last_checkpoint_step() > 0) written.insert(o.last_checkpoint_step());
        return written.size() >= 2;
      },
      base::seconds(60));
  for (const auto& name : {"coordinator", "t0-0", "t1-0", "server-0"}) job.Kill(name);
  std::vector<std::filesystem::path> manifests;
  for (const auto& entry : std::filesystem::directory_iterator(job.checkpoints())) {
    if (std::filesystem::exists(entry.path() / "manifest.json")) manifests.push_back(entry.path());
  }
  std::sort(manifests.begin(), manifests.end());
  ASSERT_GE(manifests.size(), 2u);
  for (const auto& entry : std::filesystem::directory_iterator(manifests.back())) {
    if (!entry.path().filename().string().starts_with("rows-")) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(200);
    file << "damage";
  }
  job.StartCoordinator();
  job.Apply(shape_, "start again");
  const pb::Observation end = job.WaitForEnd();
  EXPECT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
  EXPECT_EQ(end.samples_done(), 640 * 150);
  EXPECT_THAT(job.Log("coordinator"), testing::HasSubstr(manifests.back().filename().string()));
}

}  // namespace
}  // namespace medley::worker::bad_input_test
