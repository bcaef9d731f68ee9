// The surviving state contains every sample exactly once, whichever process is killed at any time.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "common/base/rng.h"
#include "common/base/testing/soak.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"
#include "tests/integration/worker/train_job.h"

namespace medley::worker::exactly_once_test {
namespace {

namespace pb = ::medley::job::v1;

class ExactlyOnceTest : public testing::Test {
 protected:
  static constexpr int64_t kSamples = int64_t{SmallTable::kRows} * 3;
  const SmallTable table_;
  // Two stages; the dense one has two replicas.
  const JobShape shape_{.stages = {{0, 1, 1}, {1, 4, 2}}, .servers = 2, .micro_batches = 2};
};

// Many kills of one job, also of servers, whose rows come from a checkpoint then. Each step has the loss that it has in
// one process that nobody disturbs.
TEST_F(ExactlyOnceTest, MembersAreKilledAtRandom) {
  constexpr int kKills = 10, kEpochs = 9;
  const int seeds = base::Rounds(1, 8);
  const JobOptions options = SmallJob(table_.file(), kEpochs);
  const Outcome undisturbed = Train(options, {.stages = {{0, 4, 1}}});
  int recoveries = 0, lost = 0, kills = 0;
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(seeds); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Rng rng(seed);
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply(shape_, "start");
    std::set<std::string> killed;
    kills += KillAtRandom(job, rng, {.kills = kKills, .killed = &killed});
    EXPECT_TRUE(killed.size() == 5 || seed > 1) << "take another first seed: every member must be killed";
    // Each Ready and Progress had the ledger's count too.
    const pb::Observation end = ExpectComplete(job, int64_t{SmallTable::kRows} * kEpochs);
    ASSERT_FALSE(HasFailure());
    EXPECT_LT(LargestDifference(undisturbed, {.losses = job.Losses()}), 1e-5);
    recoveries += static_cast<int>(end.restarts());
    for (const pb::SwitchRecord& record : end.switches()) {
      EXPECT_NE(record.cause(), pb::SWITCH_CAUSE_UNSPECIFIED) << record.reason();
      lost += record.cause() == pb::SWITCH_CAUSE_MEMBER_LOST ? 1 : 0;
      EXPECT_EQ(record.reason().find("the connection broke"), std::string::npos) << record.reason();
    }
  }
  std::printf("%d seeds, %d kills, %d recoveries, %d say who was lost\n", seeds, kills, recoveries, lost);
  EXPECT_GE(kills, seeds * kKills * 3 / 4) << "the job is too short for its kills";
  EXPECT_GE(lost, kills * 3 / 5) << "the recorded cause must be the killed process, not a peer's broken exchange";
  EXPECT_GE(recoveries, kills * 3 / 5);
}

TEST_F(ExactlyOnceTest, TheCoordinatorIsKilledAndRestartsFromItsJournal) {
  JobHarness job(SmallJob(table_.file()));
  job.StartCoordinator();
  job.Apply(shape_, "start");
  {
    const Slowed held(job, "t0-0");  // the job does not end before the kill
    ASSERT_FALSE(IsOver(job.WaitFor(Reached(40), base::seconds(60))));
  }
  job.Kill("coordinator");
  job.StartCoordinator();
  ExpectComplete(job, kSamples);
  EXPECT_EQ(job.Losses().size(), 300u);
}

// A coordinator ends when its last observation was read. Whoever asks later gets it from the journal.
TEST_F(ExactlyOnceTest, TheEndOfAJobIsReadFromItsJournal) {
  JobHarness job(SmallJob(table_.file()));
  job.StartCoordinator();
  job.Apply(shape_, "start");
  const pb::Observation end = ExpectComplete(job, kSamples);
  ASSERT_EQ(job.WaitForExit("coordinator"), 0);
  const pb::Observation later = job.WaitForEnd();
  EXPECT_EQ(later.phase(), pb::JOB_PHASE_COMPLETE) << later.message();
  EXPECT_EQ(later.samples_done(), kSamples);
  EXPECT_EQ(later.step(), end.step());
}

}  // namespace
}  // namespace medley::worker::exactly_once_test
