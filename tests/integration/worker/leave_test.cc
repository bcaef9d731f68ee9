// A member that gets SIGTERM (a drain, an eviction, a spot interruption) leaves at a step boundary: nothing is lost or
// trained twice, and it exits as soon as the others train without it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "tests/integration/worker/job_harness.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;

class LeaveTest : public testing::Test {
 protected:
  void SetUp() override {
    data_ = std::filesystem::temp_directory_path() / ("medley-leave-" + std::to_string(getpid()) + ".csv");
    CopyLines(ExampleData("adult.train.csv"), data_, kRows);
    options_.train = data_;
    options_.hidden = {8};
    options_.epochs = kEpochs;
    options_.batch_size = 16;
    options_.embedding_rows = 512;
  }
  void TearDown() override { std::filesystem::remove(data_); }

  static pb::Observation Trained(JobHarness& job, int64_t steps) {
    return job.WaitFor([&](const pb::Observation& o) { return o.step() >= steps; }, base::seconds(60));
  }
  void ExpectAllTrainedOnce(JobHarness& job) {
    const pb::Observation end = job.WaitForEnd(base::seconds(120));
    ASSERT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
    EXPECT_EQ(end.samples_done(), int64_t{kRows} * kEpochs);
    EXPECT_EQ(job.Losses().size(), size_t{kRows} / 16 * kEpochs);
    EXPECT_EQ(end.restarts(), 0);
    for (const pb::SwitchRecord& record : end.switches()) {
      EXPECT_FALSE(record.recovery()) << record.reason();
      EXPECT_EQ(record.lost_steps(), 0) << record.reason();
    }
    left_ = std::any_of(end.switches().begin(), end.switches().end(),
                        [](const pb::SwitchRecord& record) { return record.cause() == pb::SWITCH_CAUSE_MEMBER_LEFT; });
  }

  static constexpr int kRows = 1600;
  static constexpr int kEpochs = 12;  // enough that the job does not end before the member has left
  std::filesystem::path data_;
  JobOptions options_;
  bool left_ = false;
};

TEST_F(LeaveTest, AReplicaLeavesAtAStepBoundary) {
  JobHarness job(options_);
  job.StartCoordinator();
  job.Apply({.stages = {{0, 1, 1}, {1, 4, 2}}, .servers = 2, .micro_batches = 2}, "start");
  Trained(job, 20);
  EXPECT_EQ(job.Terminate("t1-1"), 0) << job.Log("t1-1");
  ExpectAllTrainedOnce(job);
  EXPECT_TRUE(left_);
}

}  // namespace
}  // namespace medley::worker
