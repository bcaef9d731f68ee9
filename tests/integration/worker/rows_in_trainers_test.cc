// Jobs whose trainers keep the embedding rows, instead of parameter servers.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "common/base/testing/soak.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"
#include "tests/integration/worker/train_job.h"

namespace medley::worker::rows_in_trainers_test {
namespace {

namespace pb = ::medley::job::v1;

constexpr int kRows = SmallTable::kRows;
constexpr int kOperations = 4;

// One trainer, and two of which each has a shard; in stages, the embedding stage alone has them.
const JobShape kOneServer{.stages = {{0, kOperations, 1}}, .servers = 1, .micro_batches = 2};
const JobShape kOneInside{.stages = {{0, kOperations, 1}}, .rows_in_trainers = true, .micro_batches = 2};
const JobShape kTwoServers{.stages = {{0, kOperations, 2}}, .servers = 2, .micro_batches = 2};
const JobShape kTwoInside{.stages = {{0, kOperations, 2}}, .rows_in_trainers = true, .micro_batches = 2};
const JobShape kStagesInside{.stages = {{0, 1, 2}, {1, kOperations, 1}}, .rows_in_trainers = true, .micro_batches = 2};

class RowsInTrainersTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { table_.emplace(); }
  static void TearDownTestSuite() {
    undisturbed_.clear();
    table_.reset();
  }

  static JobOptions Job(int epochs) {
    JobOptions options = SmallJob(table_->file(), epochs);
    options.optimizer = "adam";
    options.learning_rate = 0.001;
    return options;
  }
  // The losses of one trainer and one server that nobody disturbs. The number of epochs changes no step, so one job has
  // those of all, unless one trained for longer.
  static Outcome Undisturbed(int64_t steps) {
    if (static_cast<int64_t>(undisturbed_.size()) < steps) {
      undisturbed_ = Train(Job(static_cast<int>(std::max<int64_t>(steps, kUsualSteps) / 100 + 1)), kOneServer).losses;
    }
    EXPECT_GE(static_cast<int64_t>(undisturbed_.size()), steps);
    Outcome outcome{.losses = undisturbed_};
    outcome.losses.resize(static_cast<size_t>(steps));
    return outcome;
  }
  // Applies the plans one after the other, each when the switch before it is complete and 40 steps have followed.
  // Returns what is observed 40 steps after the last switch.
  static pb::Observation Move(JobHarness& job, const std::vector<std::pair<const JobShape*, const char*>>& plans) {
    AfterSwitches(job, 0);
    for (int i = 0; i < static_cast<int>(plans.size()) && !HasFailure(); ++i) {
      const auto& [shape, why] = plans[static_cast<size_t>(i)];
      job.Apply(*shape, why);
      AfterSwitches(job, i + 1);
    }
    const pb::Observation last = job.Observe();
    EXPECT_FALSE(IsOver(last)) << "the job is too short";
    return last;
  }

  static constexpr int kEndless = 5000;  // epochs: more than any machine trains during a test
  static constexpr int64_t kUsualSteps = 1500;
  static inline std::optional<SmallTable> table_;
  static inline std::vector<double> undisturbed_;
};

void ExpectSameBits(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.header, b.header);
  EXPECT_EQ(a.weights, b.weights);
}

TEST_F(RowsInTrainersTest, OneTrainerHasTheBitsThatItHasWithAServer) {
  const Outcome server = Train(Job(3), kOneServer);
  ASSERT_EQ(server.losses.size(), 300U);
  ExpectSameBits(server, Train(Job(3), kOneInside));
}

// Sums of gradients do not depend on where the shards are. With two trainers the sums of dense gradients have an order
// that is fixed, so the bits are the same too.
TEST_F(RowsInTrainersTest, TwoTrainersHaveTheBitsThatTheyHaveWithTwoServers) {
  ExpectSameBits(Train(Job(3), kTwoServers), Train(Job(3), kTwoInside));
}

TEST_F(RowsInTrainersTest, AnEmbeddingStageOfItsOwnKeepsTheRows) {
  EXPECT_LT(LargestDifference(Undisturbed(300), Train(Job(3), kStagesInside)), 1e-5);
}

// FTRL, with keys that get and lose rows during the job.
JobOptions Counting(const std::filesystem::path& train) {
  JobOptions options = SmallJob(train);
  options.optimizer = "ftrl";
  options.learning_rate = 0.1;
  options.training_json = R"(, "embeddings": {"admitAfter": 2, "evictAfter": 60, "decaySteps": 50})";
  return options;
}

TEST_F(RowsInTrainersTest, TheSameKeysHaveRowsInEveryPlan) {
  const Outcome one = Train(Counting(table_->file()), kOneServer);
  ASSERT_EQ(one.losses.size(), 300U);
  ExpectSameBits(one, Train(Counting(table_->file()), kOneInside));
  const Outcome two = Train(Counting(table_->file()), kTwoServers);
  ExpectSameBits(two, Train(Counting(table_->file()), kTwoInside));
  EXPECT_LT(LargestDifference(one, two), 1e-4);
  EXPECT_LT(LargestDifference(one, Train(Counting(table_->file()), kStagesInside)), 1e-4);
  JobOptions all_keys = Counting(table_->file());
  all_keys.training_json.clear();
  EXPECT_NE(one.losses, Train(all_keys, kOneServer).losses) << "the job is too short for its keys";
}

// Sightings move with the rows, are in checkpoints, and are counted again from the pushes for a lost server. Each of
// the four happens when the one before it is over.
TEST_F(RowsInTrainersTest, SightingsSurviveMovesAndKills) {
  JobOptions options = Counting(table_->file());
  options.epochs = kEndless;
  // At every moment many keys have sightings and no row yet.
  options.training_json = R"(, "embeddings": {"admitAfter": 6, "evictAfter": 400, "decaySteps": 300})";
  std::vector<double> disturbed;
  {
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply(kOneServer, "start");
    pb::Observation last = AfterSwitches(job, 0);
    const auto settle = [&] { last = AfterSwitches(job, last.switches_size() + 1, 100); };
    job.Apply(kOneInside, "into the trainer");
    settle();
    job.Kill("t0-0");
    settle();
    job.Apply(kOneServer, "to a server");
    settle();
    job.Kill("server-0");
    settle();
    ASSERT_FALSE(HasFailure() || IsOver(last)) << last.ShortDebugString();
    const auto recoveries = std::ranges::count_if(last.switches(), &pb::SwitchRecord::recovery);
    EXPECT_GE(recoveries, 2) << last.ShortDebugString();
    EXPECT_EQ(last.switches_size() - recoveries, 2) << last.ShortDebugString();
    disturbed = FirstLosses(job, last.step());
  }
  options.epochs = static_cast<int>(disturbed.size() / 100 + 1);
  Outcome undisturbed = Train(options, kOneServer);
  ASSERT_GE(undisturbed.losses.size(), disturbed.size());
  undisturbed.losses.resize(disturbed.size());
  EXPECT_EQ(disturbed, undisturbed.losses);
}

// The state of Adam moves with the rows: every later loss has the same bits.
TEST_F(RowsInTrainersTest, MovesToATrainerAndBackKeepEveryRow) {
  JobHarness job(Job(kEndless));
  job.StartCoordinator();
  job.StartMembers(kOneServer);
  job.Apply(kOneServer, "start");
  const pb::Observation last = Move(
      job, {{&kOneInside, "into the trainer"}, {&kOneServer, "to a server"}, {&kOneInside, "into the trainer again"}});
  EXPECT_EQ(FirstLosses(job, last.step()), Undisturbed(last.step()).losses);
  ASSERT_EQ(last.switches_size(), 3);
  for (const pb::SwitchRecord& record : last.switches()) {
    EXPECT_FALSE(record.recovery()) << record.reason();
    EXPECT_EQ(record.lost_steps(), 0) << record.reason();
    std::printf("%s: paused %.4f s\n", record.reason().c_str(), record.pause_seconds());
  }
}

// With another number of shards, too: one of the two trainers leaves, and comes back.
TEST_F(RowsInTrainersTest, ShardsMoveWhenTheNumberOfTrainersChanges) {
  JobHarness job(Job(kEndless));
  job.StartCoordinator();
  job.StartMembers(kTwoServers);
  job.Apply(kTwoInside, "start");
  const pb::Observation last = Move(job, {{&kOneInside, "fewer"}, {&kTwoInside, "more"}, {&kTwoServers, "to servers"}});
  EXPECT_LT(LargestDifference(Undisturbed(last.step()), {.losses = FirstLosses(job, last.step())}), 1e-5);
  ASSERT_EQ(last.switches_size(), 3);
  for (const pb::SwitchRecord& record : last.switches()) EXPECT_EQ(record.lost_steps(), 0) << record.reason();
}

// A trainer takes its shard with it. The job returns to a checkpoint, and each step has the loss of one process that
// nobody disturbs.
TEST_F(RowsInTrainersTest, TrainersWithShardsAreKilledAtRandom) {
  const JobOptions options = Job(6);
  const Outcome undisturbed = Undisturbed(int64_t{100} * options.epochs);
  const int most = base::Rounds(3, 6);  // kills of each job
  int lost_rows = 0, kills = 0;
  for (const JobShape& shape : {kOneInside, kTwoInside, kStagesInside}) {
    SCOPED_TRACE(shape.stages.size() * 10 + static_cast<size_t>(shape.stages[0].units));
    base::Rng rng(shape.stages.size() + 7);
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply(shape, "start");
    kills += KillAtRandom(job, rng, {.kills = most, .least_steps = 10});
    const pb::Observation end = ExpectComplete(job, int64_t{kRows} * options.epochs);
    ASSERT_FALSE(HasFailure());
    EXPECT_LT(LargestDifference(undisturbed, {.losses = job.Losses()}), 1e-5);
    for (const pb::SwitchRecord& record : end.switches()) {
      lost_rows += record.lost_steps() > 1 ? 1 : 0;
      EXPECT_EQ(record.reason().find('/'), std::string::npos) << record.reason();
    }
  }
  std::printf("%d kills, %d recoveries from a checkpoint\n", kills, lost_rows);
  EXPECT_GE(kills, 3 * most / 2) << "the jobs are too short for their kills";
  EXPECT_GE(lost_rows, most / 2) << "a killed trainer takes its rows with it";
}

// A checkpoint that one kind of plan has written is restored by the other: all processes are lost, and the next plan is
// one of the other kind.
TEST_F(RowsInTrainersTest, CheckpointsSuitBothKindsOfPlans) {
  for (const bool into_trainer : {true, false}) {
    SCOPED_TRACE(into_trainer);
    JobHarness job(Job(kEndless));
    job.StartCoordinator();
    job.Apply(into_trainer ? kOneServer : kOneInside, "start");
    const pb::Observation saved =
        job.WaitFor([](const pb::Observation& o) { return o.last_checkpoint_step() > 0; }, base::seconds(60));
    ASSERT_GT(saved.last_checkpoint_step(), 0);
    for (const std::string& name : job.Running()) job.Kill(name, /*restart=*/false);
    job.Apply(into_trainer ? kOneInside : kOneServer, "the other kind");
    const pb::Observation last = AfterSwitches(job, 1, 100);
    ASSERT_FALSE(HasFailure() || IsOver(last)) << last.ShortDebugString();
    EXPECT_EQ(FirstLosses(job, last.step()), Undisturbed(last.step()).losses);
    ASSERT_EQ(last.switches_size(), 1);
    EXPECT_GE(last.switches(0).at_step(), saved.last_checkpoint_step());
  }
}

}  // namespace
}  // namespace medley::worker::rows_in_trainers_test
