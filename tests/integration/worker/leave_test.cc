// A member that gets SIGTERM (a drain, an eviction, a spot interruption) leaves at a step boundary: nothing is lost or
// trained twice, and it exits as soon as the others train without it.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"

namespace medley::worker::leave_test {
namespace {

namespace pb = ::medley::job::v1;

class LeaveTest : public testing::Test {
 protected:
  void SetUp() override { options_.checkpoint_interval = "3600s"; }

  void ExpectAllTrainedOnce(JobHarness& job) {
    const pb::Observation end = ExpectComplete(job, int64_t{SmallTable::kRows} * kEpochs);
    EXPECT_EQ(job.Losses().size(), size_t{100} * kEpochs);
    EXPECT_EQ(end.restarts(), 0);
    for (const pb::SwitchRecord& record : end.switches()) {
      EXPECT_FALSE(record.recovery()) << record.reason();
      EXPECT_EQ(record.lost_steps(), 0) << record.reason();
    }
    left_ = std::any_of(end.switches().begin(), end.switches().end(),
                        [](const pb::SwitchRecord& record) { return record.cause() == pb::SWITCH_CAUSE_MEMBER_LEFT; });
  }

  static constexpr int kEpochs = 3;
  const SmallTable table_;
  JobOptions options_ = SmallJob(table_.file(), kEpochs);
  bool left_ = false;
};

TEST_F(LeaveTest, AReplicaLeavesAtAStepBoundary) {
  JobHarness job(options_);
  job.StartCoordinator();
  job.Apply({.stages = {{0, 1, 1}, {1, 4, 2}}, .servers = 2, .micro_batches = 2}, "start");
  job.WaitFor(Reached(20), base::seconds(60));
  {
    const Slowed slowed(job, "t0-0");  // the job does not end before the member has left
    EXPECT_EQ(job.Terminate("t1-1"), 0) << job.Log("t1-1");
  }
  ExpectAllTrainedOnce(job);
  EXPECT_TRUE(left_);
}

}  // namespace
}  // namespace medley::worker::leave_test
