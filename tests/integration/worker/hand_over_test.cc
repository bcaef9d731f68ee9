// Another coordinator takes a training job over: handed over by the one before, or without it. No sample is lost or
// trained twice, whichever process is stopped or killed at any time.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>

#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/base/testing/soak.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"

namespace medley::worker::hand_over_test {
namespace {

namespace pb = ::medley::job::v1;

constexpr int kSupersededExit = 3;
constexpr int kEpochs = 8;

class HandOverTest : public testing::Test {
 protected:
  JobOptions Job(int epochs) const { return SmallJob(table_.file(), epochs); }
  static void RunTo(JobHarness& job, int64_t step) { job.WaitFor(Reached(step), base::seconds(60)); }
  // After ten more steps starts another coordinator, and waits until the one before has ended. A trainer is slow
  // meanwhile, so that the job does not end before.
  static void HandOver(JobHarness& job, int term) {
    const Slowed slowed(job, "t0-0");
    RunTo(job, job.Observe().step() + 10);
    job.StartCoordinator(term);
    EXPECT_EQ(job.WaitForExit(JobHarness::CoordinatorName(term - 1)), kSupersededExit) << job.AllLogs();
    job.Follow(term);
  }
  static pb::Observation ExpectComplete(JobHarness& job, int epochs) {
    const pb::Observation end = worker::ExpectComplete(job, int64_t{SmallTable::kRows} * epochs);
    EXPECT_EQ(job.Losses().size(), size_t{100} * static_cast<size_t>(epochs));
    return end;
  }

  const SmallTable table_;
  // Two stages; the dense one has two replicas.
  const JobShape shape_{.stages = {{0, 1, 1}, {1, 4, 2}}, .servers = 2, .micro_batches = 2};
};

TEST_F(HandOverTest, TheSecondCoordinatorTrainsOnInTheSameGeneration) {
  JobHarness job(Job(kEpochs));
  job.StartCoordinator(1);
  job.Apply(shape_, "start");
  RunTo(job, 60);
  HandOver(job, 2);
  const pb::Observation end = ExpectComplete(job, kEpochs);
  EXPECT_EQ(end.coordinator_term(), 2);
  EXPECT_EQ(end.restarts(), 0) << "a hand-over is no recovery";
  EXPECT_EQ(end.switches_size(), 0);
  for (const double loss : job.Losses()) EXPECT_TRUE(std::isfinite(loss)) << "a report was lost";
  const std::string log = job.Log("coordinator-2");
  const size_t at = log.find("after a pause of");
  ASSERT_NE(at, std::string::npos) << log;
  std::printf("%s\n", log.substr(at, 30).c_str());
}

// A drain evicts the pod before the second coordinator has started.
TEST_F(HandOverTest, ACoordinatorThatMustStopLeadsUntilItIsReplaced) {
  JobHarness job(Job(kEpochs));
  job.StartCoordinator(1);
  job.Apply(shape_, "start");
  RunTo(job, 40);
  job.Signal("coordinator", SIGTERM);
  RunTo(job, 80);
  HandOver(job, 2);
  EXPECT_EQ(ExpectComplete(job, kEpochs).restarts(), 0);
}

// It was started for a running job, and asks when the job is over.
TEST_F(HandOverTest, ACoordinatorThatComesTooLateTellsHowTheJobEnded) {
  JobHarness job(Job(1));
  job.StartCoordinator(1);
  job.Apply(shape_, "start");
  ExpectComplete(job, 1);
  job.StartCoordinator(2);
  job.Follow(2);
  const pb::Observation end = ExpectComplete(job, 1);
  EXPECT_EQ(end.coordinator_term(), 2);
  EXPECT_EQ(end.restarts(), 0) << "nothing was trained again" << job.AllLogs();
}

TEST_F(HandOverTest, AJobMovesAgainAndAgain) {
  JobHarness job(Job(kEpochs));
  job.StartCoordinator(1);
  job.Apply(shape_, "start");
  RunTo(job, 40);
  for (int term = 2; term <= 4; ++term) HandOver(job, term);
  EXPECT_EQ(ExpectComplete(job, kEpochs).restarts(), 0);
}

// As behind a partition, or on a node that hangs: it wakes when another one has led for some time.
TEST_F(HandOverTest, ACoordinatorThatWasStoppedCannotComeBack) {
  JobHarness job(Job(kEpochs));
  job.StartCoordinator(1);
  job.Apply(shape_, "start");
  RunTo(job, 60);
  {
    const Slowed slowed(job, "t0-0");  // the job does not end before
    job.Signal("coordinator", SIGSTOP);
    job.StartCoordinator(2);
    job.Follow(2);
    const pb::Observation after =
        job.WaitFor([](const pb::Observation& o) { return o.phase() == pb::JOB_PHASE_TRAINING && o.step() > 100; },
                    base::seconds(60));
    ASSERT_EQ(after.phase(), pb::JOB_PHASE_TRAINING) << "the job is too short for this test";
    job.Signal("coordinator", SIGCONT);
    EXPECT_EQ(job.WaitForExit("coordinator"), kSupersededExit) << job.AllLogs();
  }
  const pb::Observation end = ExpectComplete(job, kEpochs);
  EXPECT_LE(end.switches().rbegin()->lost_steps(), 1);
  // Started again in its pod, it finds out before it does anything.
  job.StartCoordinator(1);
  EXPECT_EQ(job.WaitForExit("coordinator"), kSupersededExit) << job.AllLogs();
}

TEST_F(HandOverTest, EitherCoordinatorIsKilledAtRandom) {
  base::Mutex mutex;
  base::CondVar never;
  // Rounds in a row kill different ones.
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(base::Rounds(3, 12)); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Rng rng(seed);
    JobHarness job(Job(6));
    job.StartCoordinator(1);
    job.Apply(shape_, "start");
    RunTo(job, static_cast<int64_t>(1 + rng.Below(80)));
    job.StartCoordinator(2);
    const auto delay = base::milliseconds(static_cast<int64_t>(rng.Below(200)));
    {
      base::MutexLock lock(mutex);
      never.WaitFor(mutex, {}, delay, [] { return false; });
    }
    const uint64_t what = seed % 3;
    const char* const kVictims[] = {"old coordinator", "new coordinator", "coordinators"};
    std::printf("seed %lu: kill the %s after %ld ms\n", static_cast<unsigned long>(seed), kVictims[what],
                static_cast<long>(delay.count()));
    if (what != 1) job.Kill("coordinator");
    if (what != 0) job.Kill("coordinator-2");
    if (what != 0) job.StartCoordinator(2);  // as the kubelet does
    job.Follow(2);
    ExpectComplete(job, 6);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace medley::worker::hand_over_test
