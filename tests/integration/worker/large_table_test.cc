// A whole job on a table whose rows are larger than the memory that its processes may use: they are in mapped files,
// one process of the machine reads the text, and the model is that of rows in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/testing/temp_dir.h"
#include "tests/integration/worker/train_job.h"

namespace medley::worker::large_table_test {
namespace {

constexpr int64_t kMib = int64_t{1} << 20;
constexpr int64_t kLimit = 64 * kMib;

// The most memory of each process that is not a page of a file, looked at every few milliseconds.
class MemoryWatch {
 public:
  void Add(pid_t pid) {
    const base::MutexLock lock(mutex_);
    highest_[pid] = 0;
  }
  std::vector<int64_t> Highest() {
    const base::MutexLock lock(mutex_);
    std::vector<int64_t> all;
    for (const auto& [pid, bytes] : highest_) all.push_back(bytes);
    return all;
  }

 private:
  static int64_t AnonymousOf(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    int64_t kib = 0;
    for (std::string word; status >> word;) {
      if (word == "RssAnon:") status >> kib;
    }
    return kib << 10;
  }
  void Look() {
    const base::MutexLock lock(mutex_);
    for (auto& [pid, bytes] : highest_) bytes = std::max(bytes, AnonymousOf(pid));
  }

  base::Mutex mutex_;
  std::map<pid_t, int64_t> highest_ ABSL_GUARDED_BY(mutex_);
  base::SystemClock clock_;
  std::jthread thread_{[this](std::stop_token end) {
    while (clock_.SleepFor(base::milliseconds(5), end)) Look();
  }};
};

class LargeTableTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *base::MakeTempDir("medley-large-table");
    std::string rows = *base::ReadFile(ExampleData("adult.train.csv"));
    if (!rows.ends_with('\n')) rows += '\n';
    std::ofstream table(folder_ / "train.csv", std::ios::binary);
    for (int i = 0; i < kCopies; ++i) table << rows;
  }
  void TearDown() override { base::RemoveTempDir(folder_); }

  JobOptions Options() const {
    JobOptions options;
    options.train = (folder_ / "train.csv").string();
    options.test = ExampleData("adult.test.csv");
    options.model = "logistic";
    options.hidden = {};
    options.embedding_rows = 1024;
    options.batch_size = 16384;
    return options;
  }

  static constexpr int kCopies = 36;  // 1,172,196 rows of 60 bytes

  std::filesystem::path folder_;
};

TEST_F(LargeTableTest, IsTrainedInLessMemoryThanItsRowsTakeAndGivesTheSameModel) {
  const JobShape shape{.stages = {{.end = 3, .units = 2}}, .servers = 1};
  const auto train = [&](JobOptions options, int64_t& highest, std::string& logs) {
    MemoryWatch watch;
    options.place = [&](const std::string&, pid_t pid) { watch.Add(pid); };
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply(shape, "start");
    Outcome run;
    run.end = job.WaitForEnd(base::seconds(240));
    EXPECT_EQ(run.end.phase(), job::v1::JOB_PHASE_COMPLETE) << run.end.message() << job.AllLogs();
    EXPECT_EQ(run.end.samples_done(), int64_t{kCopies} * 32'561);
    run.losses = job.Losses();
    run.header = base::ReadFile(job.checkpoints() / "export" / "model.safetensors").value_or("");
    for (const std::string name : {"t0-0", "t0-1"}) logs += job.Log(name);
    highest = 0;
    for (const int64_t bytes : watch.Highest()) highest = std::max(highest, bytes);
    return run;
  };
  JobOptions in_file = Options();
  in_file.memory_limit = kLimit;
  in_file.samples_folder = (folder_ / "samples").string();
  int64_t file_bytes = 0, memory_bytes = 0;
  std::string file_logs, memory_logs;
  const Outcome file = train(in_file, file_bytes, file_logs);
  int kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(in_file.samples_folder)) {
    EXPECT_THAT(entry.path().filename().string(), testing::StartsWith("samples-"));
    EXPECT_GT(entry.file_size(), static_cast<uint64_t>(kLimit));
    ++kept;
  }
  EXPECT_EQ(kept, 1) << "both trainers use one file";

  JobOptions in_memory = Options();
  in_memory.samples_folder = in_memory.train + "/samples";  // no folder: the rows must be in memory
  const Outcome memory = train(in_memory, memory_bytes, memory_logs);
  EXPECT_THAT(memory_logs, testing::HasSubstr("are kept in the memory of this process, because"));
  EXPECT_THAT(file_logs, testing::Not(testing::HasSubstr("are kept in the memory of this process")));
  std::printf("most memory of a process: rows in a file %.0f MiB, in memory %.0f MiB\n",
              static_cast<double>(file_bytes) / kMib, static_cast<double>(memory_bytes) / kMib);
  EXPECT_LT(file_bytes, kLimit);
  EXPECT_GT(memory_bytes, kLimit) << "the table must be larger than the memory";
  EXPECT_EQ(file.losses, memory.losses);
  EXPECT_EQ(file.header, memory.header) << "not one bit differs";
}

}  // namespace
}  // namespace medley::worker::large_table_test
