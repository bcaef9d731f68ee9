// The surviving state contains every sample exactly once, whichever process is killed at any time.
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/base/testing/soak.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/train_job.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;

JobOptions Small(const std::filesystem::path& train) {
  JobOptions options;
  options.train = train;
  options.hidden = {8};
  options.epochs = 3;
  options.batch_size = 16;
  options.embedding_rows = 512;
  options.checkpoint_interval = "1s";
  return options;
}

// The data is in a folder of its own, which lives as long as the test.
class ExactlyOnceTest : public testing::Test {
 protected:
  void SetUp() override {
    data_ = std::filesystem::temp_directory_path() / ("medley-exactly-once-" + std::to_string(getpid()) + ".csv");
    CopyLines(ExampleData("adult.train.csv"), data_, kRows);
  }
  void TearDown() override { std::filesystem::remove(data_); }

  static constexpr int kRows = 1600;
  static constexpr int64_t kSamples = int64_t{kRows} * 3;
  std::filesystem::path data_;
  // Two stages; the dense one has two replicas.
  const JobShape shape_{.stages = {{0, 1, 1}, {1, 4, 2}}, .servers = 2, .micro_batches = 2};
};

// Many kills of one job, also of servers, whose rows come from a checkpoint then. Each step has the loss that it has in
// one process that nobody disturbs.
TEST_F(ExactlyOnceTest, MembersAreKilledAtRandom) {
  constexpr int kKills = 10, kEpochs = 9;
  const int seeds = base::Rounds(2, 8);
  JobOptions options = Small(data_);
  options.epochs = kEpochs;
  const Outcome undisturbed = Train(options, {.stages = {{0, 4, 1}}});
  int recoveries = 0, lost = 0, kills = 0;
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(seeds); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Rng rng(seed);
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply(shape_, "start");
    int64_t at = 0;
    for (int i = 0; i < kKills; ++i) {
      at += static_cast<int64_t>(1 + rng.Below(60));
      const pb::Observation now = job.WaitFor(
          [&](const pb::Observation& o) {
            return o.step() >= at || o.phase() == pb::JOB_PHASE_COMPLETE || o.phase() == pb::JOB_PHASE_FAILED;
          },
          base::seconds(60));
      if (now.phase() == pb::JOB_PHASE_COMPLETE) break;
      at = std::max(at, now.step());
      const auto members = job.Running();
      ASSERT_FALSE(members.empty());
      const std::string victim = members[rng.Below(members.size())];
      std::printf("seed %lu: kill %s at step %ld\n", static_cast<unsigned long>(seed), victim.c_str(),
                  static_cast<long>(now.step()));
      job.Kill(victim);
      ++kills;
    }
    const pb::Observation end = job.WaitForEnd(base::seconds(60));
    ASSERT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
    EXPECT_EQ(end.samples_done(), int64_t{kRows} * kEpochs);  // each Ready and Progress had the ledger's count too
    EXPECT_LT(LargestDifference(undisturbed, {.losses = job.Losses()}), 1e-5);
    recoveries += static_cast<int>(end.restarts());
    for (const pb::SwitchRecord& record : end.switches()) {
      EXPECT_NE(record.cause(), pb::SWITCH_CAUSE_UNSPECIFIED) << record.reason();
      lost += record.cause() == pb::SWITCH_CAUSE_MEMBER_LOST ? 1 : 0;
      EXPECT_EQ(record.reason().find("gloo"), std::string::npos) << record.reason();
    }
  }
  std::printf("%d seeds, %d kills, %d recoveries, %d say who was lost\n", seeds, kills, recoveries, lost);
  EXPECT_GE(kills, seeds * kKills * 3 / 4) << "the job is too short for its kills";
  EXPECT_GE(lost, kills * 3 / 5) << "the recorded cause must be the killed process, not a peer's broken exchange";
  EXPECT_GE(recoveries, kills * 3 / 5);
}

TEST_F(ExactlyOnceTest, TheCoordinatorIsKilledAndRestartsFromItsJournal) {
  JobHarness job(Small(data_));
  job.StartCoordinator();
  job.Apply(shape_, "start");
  job.WaitFor([](const pb::Observation& o) { return o.step() >= 60; }, base::seconds(60));
  job.Kill("coordinator");
  job.StartCoordinator();
  const pb::Observation end = job.WaitForEnd(base::seconds(60));
  ASSERT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
  EXPECT_EQ(end.samples_done(), kSamples);
  EXPECT_EQ(job.Losses().size(), 300u);
}

// A coordinator ends when its last observation was read. Whoever asks later gets it from the journal.
TEST_F(ExactlyOnceTest, TheEndOfAJobIsReadFromItsJournal) {
  JobHarness job(Small(data_));
  job.StartCoordinator();
  job.Apply(shape_, "start");
  const pb::Observation end = job.WaitForEnd(base::seconds(120));
  ASSERT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
  ASSERT_EQ(job.WaitForExit("coordinator"), 0);
  const pb::Observation later = job.WaitForEnd();
  EXPECT_EQ(later.phase(), pb::JOB_PHASE_COMPLETE) << later.message();
  EXPECT_EQ(later.samples_done(), kSamples);
  EXPECT_EQ(later.step(), end.step());
}

}  // namespace
}  // namespace medley::worker
