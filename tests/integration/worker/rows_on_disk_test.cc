// Jobs whose embedding rows are mostly on the disks of the processes that keep them (spec.training.embeddings).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/testing/temp_dir.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"
#include "tests/integration/worker/train_job.h"

namespace medley::worker::rows_on_disk_test {
namespace {

namespace pb = ::medley::job::v1;

constexpr int kRows = SmallTable::kRows;
constexpr int kOperations = 4;
constexpr char kBudget[] = R"(, "embeddings": {"memoryBudget": "1Mi"})";  // for about 240 rows

const JobShape kOneServer{.stages = {{0, kOperations, 1}}, .servers = 1, .micro_batches = 2};
const JobShape kOneInside{.stages = {{0, kOperations, 1}}, .rows_in_trainers = true, .micro_batches = 2};
const JobShape kTwoServers{.stages = {{0, kOperations, 2}}, .servers = 2, .micro_batches = 2};

class RowsOnDiskTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { table_.emplace(); }
  static void TearDownTestSuite() { table_.reset(); }

  static JobOptions Job(int epochs) {
    JobOptions options = SmallJob(table_->file(), epochs);
    options.optimizer = "adam";
    options.learning_rate = 0.001;
    options.embedding_rows = 100000;
    options.embedding_dim = 256;  // the least budget has room for a part of the rows that are used
    options.schema =
        R"({"label": {"column": 14, "positive": ">50K"}, "categorical": [1, 3, 5, 6, 7, 8, 9, 13],
            "numeric": [0, 2, 4, 10, 11, 12], "numericBuckets": 200})";
    return options;
  }
  static JobOptions OnDisk(int epochs) {
    JobOptions options = Job(epochs);
    options.training_json = kBudget;
    return options;
  }

  static inline std::optional<SmallTable> table_;
};

void ExpectSameBits(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.weights, b.weights);
}

TEST_F(RowsOnDiskTest, AreTheBitsOfRowsInMemory) {
  const Outcome in_memory = Train(Job(3), kOneServer);
  ASSERT_EQ(in_memory.losses.size(), 300U);
  ExpectSameBits(in_memory, Train(OnDisk(3), kOneServer));
  ExpectSameBits(in_memory, Train(OnDisk(3), kOneInside));
  ExpectSameBits(Train(Job(3), kTwoServers), Train(OnDisk(3), kTwoServers));
}

// A kill, a checkpoint and moves: rows on the disk are exported, rebuilt and moved as those in memory.
TEST_F(RowsOnDiskTest, SurviveKillsAndMoves) {
  constexpr int kEpochs = 24;
  const Outcome undisturbed = Train(Job(kEpochs), kOneServer);
  JobOptions options = OnDisk(kEpochs);
  options.checkpoint_interval = "1s";
  JobHarness job(options);
  job.StartCoordinator();
  job.StartMembers(kOneServer);
  job.Apply(kOneServer, "start");
  const auto await = [&](int64_t step) {
    job.WaitFor([step](const pb::Observation& o) { return IsOver(o) || o.step() >= step; }, base::seconds(60));
  };
  const auto kill_servers = [&] {
    for (const std::string& name : job.Running()) {
      if (name.starts_with("server")) job.Kill(name);
    }
  };
  await(100);
  kill_servers();
  await(500);
  job.Apply(kOneInside, "into the trainer");
  await(900);
  job.Apply(kOneServer, "to a server");
  await(1300);
  kill_servers();
  const pb::Observation end = ExpectComplete(job, int64_t{kRows} * kEpochs);
  EXPECT_EQ(job.Losses(), undisturbed.losses);
  EXPECT_GE(end.switches_size(), 3);
  EXPECT_THAT(job.AllLogs(), testing::ContainsRegex("rows of embedding tables[^}]*on_disk[^0-9}]*[1-9]"))
      << "what a checkpoint says of the tiers";
}

// The server ends with a sentence, and the one in its place gets its rows from the checkpoint and the kept pushes.
TEST_F(RowsOnDiskTest, ADamagedDiskCostsNoBit) {
  constexpr int kEpochs = 48;
  JobOptions options = Job(kEpochs);
  const Outcome undisturbed = Train(options, kOneServer);
  options.training_json = kBudget;
  const std::filesystem::path samples = table_->file().string() + "-samples";
  options.samples_folder = samples.string();
  {
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply(kOneServer, "start");
    const auto files = [&] {
      std::vector<std::filesystem::path> found;
      std::error_code error;
      for (std::filesystem::recursive_directory_iterator at(samples / "rows", error), end; !error && at != end;
           at.increment(error)) {
        if (at->path().extension() == ".rows" && at->file_size() > 0) found.push_back(at->path());
      }
      return found;
    };
    int damaged = 0;
    const auto damage = [&] {
      for (const auto& path : files()) {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        std::error_code vanished;
        const auto size = static_cast<int64_t>(std::filesystem::file_size(path, vanished));
        if (vanished) continue;
        for (int64_t at = 500; at < size * 3 / 4; at += 1000) {
          file.seekg(at);
          const char byte = static_cast<char>(file.get());
          file.seekp(at);
          file.put(static_cast<char>(byte ^ 4));
          ++damaged;
        }
      }
    };
    const std::string server = "server-0";
    for (bool over = false; !over && damaged <= 20;) {
      over = IsOver(
          job.WaitFor([&](const pb::Observation& o) { return IsOver(o) || !files().empty(); }, base::seconds(60)));
      job.Pause(server);
      damage();
      job.Resume(server);
    }
    const pb::Observation end = ExpectComplete(job, int64_t{kRows} * kEpochs);
    EXPECT_GT(damaged, 20);
    EXPECT_EQ(job.Losses(), undisturbed.losses);
    ASSERT_GE(end.switches_size(), 1);
    EXPECT_LE(end.switches(0).lost_steps(), 1) << end.switches(0).reason();
    EXPECT_THAT(job.Log(server), testing::HasSubstr("the disk has damaged them"));
    EXPECT_THAT(job.Log(server), testing::HasSubstr("its rows are rebuilt"));
  }
  // The next process deletes what one has left that ended at once.
  EXPECT_LE(std::distance(std::filesystem::directory_iterator(samples / "rows"), {}), 1);
  base::RemoveTempDir(samples);
}

// Adult, one epoch: rows and gradients of 16 bits on the wire cost little, and the same on servers and in trainers.
TEST_F(RowsOnDiskTest, RowsOf16BitsOnTheWireCostLittle) {
  const JobShape server{.stages = {{0, 5, 1}}, .servers = 1, .micro_batches = 2};
  const JobShape inside{.stages = {{0, 5, 1}}, .rows_in_trainers = true, .micro_batches = 2};
  std::map<std::string, Outcome> outcomes;
  for (const std::string wire : {"float32", "float16", "bfloat16"}) {
    JobOptions options;
    options.train = ExampleData("adult.train.csv");
    options.test = ExampleData("adult.test.csv");
    options.batch_size = 256;
    options.embedding_rows = 100000;
    options.embedding_dim = 256;  // the least budget has room for a part of the rows that are used
    options.training_json = R"(, "embeddings": {"wire": ")" + wire + R"("})";
    options.schema =
        R"({"label": {"column": 14, "positive": ">50K"}, "categorical": [1, 3, 5, 6, 7, 8, 9, 13],
            "numeric": [0, 2, 4, 10, 11, 12], "numericBuckets": 32})";
    outcomes[wire] = Train(options, server);
    const double auc = outcomes[wire].end.metrics().at("auc");
    std::printf("%s: auc %.5f\n", wire.c_str(), auc);
    EXPECT_NEAR(auc, outcomes["float32"].end.metrics().at("auc"), 0.002) << wire;
    EXPECT_GT(auc, 0.9) << wire;
    EXPECT_EQ(outcomes[wire].losses == outcomes["float32"].losses, wire == "float32");
    if (wire == "bfloat16") ExpectSameBits(outcomes[wire], Train(options, inside));
  }
}

}  // namespace
}  // namespace medley::worker::rows_on_disk_test
