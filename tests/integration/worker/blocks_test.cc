// Jobs whose samples are shuffled in windows of blocks and read ahead from a file: each sample once under kills, the
// losses of one process with all samples in memory, and a file that is damaged meanwhile is made again.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/temp_dir.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"
#include "tests/integration/worker/train_job.h"

namespace medley::worker::blocks_test {
namespace {

namespace fs = std::filesystem;
namespace pb = ::medley::job::v1;

constexpr int kCopies = 4;
constexpr int64_t kRows = int64_t{kCopies} * 32'561;  // of 60 bytes: 30 blocks
constexpr int kEpochs = 2;

class BlocksTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *base::MakeTempDir("medley-blocks");
    std::string rows = *base::ReadFile(ExampleData("adult.train.csv"));
    if (!rows.ends_with('\n')) rows += '\n';
    std::ofstream table(folder_ / "train.csv", std::ios::binary);
    for (int i = 0; i < kCopies; ++i) table << rows;
  }
  void TearDown() override { base::RemoveTempDir(folder_); }

  // Windows of 5 blocks, in memory.
  JobOptions InMemory() const {
    JobOptions options = SmallJob(folder_ / "train.csv", kEpochs);
    options.batch_size = 512;
    options.data_json = R"(, "shuffle": {"window": 20000})";
    return options;
  }
  // In a file, because they take more than a quarter of the memory while they are read.
  JobOptions InFile() const {
    JobOptions options = InMemory();
    options.memory_limit = int64_t{64} << 20;
    options.samples_folder = Samples().string();
    return options;
  }
  fs::path Samples() const { return folder_ / "samples"; }
  fs::path SampleFile() const {
    for (const auto& entry : fs::directory_iterator(Samples())) {
      if (entry.path().filename().string().starts_with("samples-")) return entry.path();
    }
    return {};
  }

  const JobShape one_{.stages = {{0, 4, 1}}};
  const JobShape four_{.stages = {{0, 1, 2}, {1, 4, 2}}, .servers = 2, .micro_batches = 2};
  fs::path folder_;
};

TEST_F(BlocksTest, KilledMembersCountEachSampleOnceWithTheLossesOfOneProcess) {
  const Outcome undisturbed = Train(InMemory(), one_);
  ASSERT_FALSE(HasFailure());
  JobOptions all = InMemory();
  all.data_json = R"(, "shuffle": {"window": 0})";
  EXPECT_GT(LargestDifference(undisturbed, Train(all, one_)), 1e-3) << "the order must be another one";

  base::Rng rng(3);
  JobHarness job(InFile());
  job.StartCoordinator();
  job.Apply(four_, "start");
  const int kills = KillAtRandom(job, rng, {.kills = 6, .steps = 100, .patience = base::seconds(120)});
  const pb::Observation end = ExpectComplete(job, kRows * kEpochs);
  EXPECT_GE(kills, 4) << "the job is too short for its kills";
  const double difference = LargestDifference(undisturbed, {.losses = job.Losses()});
  std::printf("%d kills, largest relative difference of the loss %.1e, waited %.3f s for samples\n", kills, difference,
              end.data_wait_seconds());
  EXPECT_LT(difference, 1e-5);
  EXPECT_FALSE(SampleFile().empty());
}

TEST_F(BlocksTest, AFileThatIsDamagedWhileItIsReadIsMadeAgain) {
  const Outcome undisturbed = Train(InMemory(), one_);
  JobHarness job(InFile());
  job.StartCoordinator();
  job.Apply(four_, "start");
  job.WaitFor(Reached(20), base::seconds(120));
  const fs::path damaged = SampleFile();
  ASSERT_FALSE(damaged.empty());
  {
    const int fd = open(damaged.c_str(), O_WRONLY);
    ASSERT_GE(fd, 0);
    for (auto at = static_cast<int64_t>(fs::file_size(damaged)) - 1; at > 8192; at -= 4096) {
      ASSERT_EQ(pwrite(fd, "!", 1, at), 1);
    }
    close(fd);
  }
  const pb::Observation end = ExpectComplete(job, kRows * kEpochs);
  EXPECT_LT(LargestDifference(undisturbed, {.losses = job.Losses()}), 1e-5);
  EXPECT_GE(end.restarts(), 1);
  EXPECT_THAT(job.Log("t0-0") + job.Log("t0-1") + job.Log("t1-0") + job.Log("t1-1"),
              testing::AllOf(testing::HasSubstr("of the samples has been damaged since the file was opened"),
                             testing::HasSubstr("reading the training data again")));
}

// Rows that are shuffled all together are read from a mapping, where a file that is cut off ends the process.
TEST_F(BlocksTest, AMappedFileThatIsCutOffEndsTheTrainerWithASentence) {
  JobOptions options = InFile();
  options.data_json = R"(, "shuffle": {"window": 0})";
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply(one_, "start");
  job.WaitFor(Reached(20), base::seconds(120));
  const fs::path file = SampleFile();
  ASSERT_FALSE(file.empty());
  fs::resize_file(file, 4096);
  const pb::Observation end = ExpectComplete(job, kRows * kEpochs);
  EXPECT_GE(end.restarts(), 1);
  EXPECT_THAT(job.Log("t0-0"), testing::HasSubstr("a file that this process has mapped can no longer be read"));
}

}  // namespace
}  // namespace medley::worker::blocks_test
