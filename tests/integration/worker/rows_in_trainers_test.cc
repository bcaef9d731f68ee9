// Jobs whose trainers keep the embedding rows, instead of parameter servers.
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "common/base/testing/soak.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"
#include "tests/integration/worker/train_job.h"

namespace medley::worker {
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
    undisturbed_.reset();
    table_.reset();
  }

  static JobOptions Job(int epochs) {
    JobOptions options = SmallJob(table_->file(), epochs);
    options.optimizer = "adam";
    options.learning_rate = 0.001;
    return options;
  }
  // The losses of one trainer and one server that nobody disturbs. The number of epochs changes no step, so one job has
  // those of all.
  static Outcome Undisturbed(int epochs) {
    if (!undisturbed_) undisturbed_ = Train(Job(kMostEpochs), kOneServer).losses;
    EXPECT_EQ(undisturbed_->size(), size_t{100} * kMostEpochs);
    Outcome outcome{.losses = *undisturbed_};
    outcome.losses.resize(size_t{100} * static_cast<size_t>(epochs));
    return outcome;
  }
  // Applies the plans one after the other, each when the switch before it is complete and 40 steps have followed.
  static void Move(JobHarness& job, const std::vector<std::pair<const JobShape*, const char*>>& plans) {
    int64_t step = 0;
    for (int i = 0; i < static_cast<int>(plans.size()); ++i) {
      const pb::Observation switched = job.WaitFor(
          [&](const pb::Observation& o) {
            return IsOver(o) || (o.switches_size() == i && o.phase() == pb::JOB_PHASE_TRAINING && o.step() > step);
          },
          base::seconds(60));
      step = job.WaitFor(Reached(switched.step() + 40), base::seconds(60)).step();
      const auto& [shape, why] = plans[static_cast<size_t>(i)];
      job.Apply(*shape, why);
      if (HasFailure()) return;
    }
  }

  static constexpr int kMostEpochs = 40;
  static inline std::optional<SmallTable> table_;
  static inline std::optional<std::vector<double>> undisturbed_;
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
  EXPECT_LT(LargestDifference(Undisturbed(3), Train(Job(3), kStagesInside)), 1e-5);
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

// Sightings move with the rows, are in checkpoints, and are counted again from the pushes for a lost server.
TEST_F(RowsInTrainersTest, SightingsSurviveMovesAndKills) {
  JobOptions options = Counting(table_->file());
  options.epochs = 24;
  const Outcome undisturbed = Train(options, kOneServer);
  JobHarness job(options);
  job.StartCoordinator();
  job.StartMembers(kOneServer);
  job.Apply(kOneServer, "start");
  const auto await = [&](int64_t step) {
    job.WaitFor([step](const pb::Observation& o) { return o.step() >= step; }, base::seconds(60));
  };
  await(40);
  job.Apply(kOneInside, "into the trainer");
  await(400);
  job.Kill(job.Running().front());
  await(700);
  job.Apply(kOneServer, "to a server");
  await(1000);
  for (const std::string& name : job.Running()) {
    if (name.starts_with("s")) job.Kill(name);
  }
  const pb::Observation end = job.WaitForEnd(base::seconds(120));
  ASSERT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
  EXPECT_EQ(job.Losses(), undisturbed.losses);
  EXPECT_GE(end.switches_size(), 4);
}

// The state of Adam moves with the rows: every later loss, and every weight of the model, has the same bits.
TEST_F(RowsInTrainersTest, MovesToATrainerAndBackKeepEveryRow) {
  constexpr int kEpochs = 20;
  JobHarness job(Job(kEpochs));
  job.StartCoordinator();
  job.StartMembers(kOneServer);
  job.Apply(kOneServer, "start");
  Move(job, {{&kOneInside, "into the trainer"}, {&kOneServer, "to a server"}, {&kOneInside, "into the trainer again"}});
  const pb::Observation end = ExpectComplete(job, int64_t{kRows} * kEpochs);
  EXPECT_EQ(job.Losses(), Undisturbed(kEpochs).losses);
  ASSERT_EQ(end.switches_size(), 3);
  for (const pb::SwitchRecord& record : end.switches()) {
    EXPECT_FALSE(record.recovery()) << record.reason();
    EXPECT_EQ(record.lost_steps(), 0) << record.reason();
    std::printf("%s: paused %.4f s\n", record.reason().c_str(), record.pause_seconds());
  }
}

// With another number of shards, too: one of the two trainers leaves, and comes back.
TEST_F(RowsInTrainersTest, ShardsMoveWhenTheNumberOfTrainersChanges) {
  constexpr int kEpochs = 24;
  JobHarness job(Job(kEpochs));
  job.StartCoordinator();
  job.StartMembers(kTwoServers);
  job.Apply(kTwoInside, "start");
  Move(job, {{&kOneInside, "fewer"}, {&kTwoInside, "more"}, {&kTwoServers, "to servers"}});
  const pb::Observation end = ExpectComplete(job, int64_t{kRows} * kEpochs);
  EXPECT_LT(LargestDifference(Undisturbed(kEpochs), {.losses = job.Losses()}), 1e-5);
  ASSERT_EQ(end.switches_size(), 3);
  for (const pb::SwitchRecord& record : end.switches()) EXPECT_EQ(record.lost_steps(), 0) << record.reason();
}

// A trainer takes its shard with it. The job returns to a checkpoint, and each step has the loss of one process that
// nobody disturbs.
TEST_F(RowsInTrainersTest, TrainersWithShardsAreKilledAtRandom) {
  const JobOptions options = Job(6);
  const Outcome undisturbed = Undisturbed(options.epochs);
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
  const JobOptions options = Job(kMostEpochs);
  const Outcome undisturbed = Undisturbed(kMostEpochs);
  for (const bool into_trainer : {true, false}) {
    SCOPED_TRACE(into_trainer);
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply(into_trainer ? kOneServer : kOneInside, "start");
    const pb::Observation saved =
        job.WaitFor([](const pb::Observation& o) { return o.last_checkpoint_step() > 0; }, base::seconds(60));
    ASSERT_GT(saved.last_checkpoint_step(), 0);
    for (const std::string& name : job.Running()) job.Kill(name, /*restart=*/false);
    job.Apply(into_trainer ? kOneInside : kOneServer, "the other kind");
    const pb::Observation end = ExpectComplete(job, int64_t{kRows} * options.epochs);
    EXPECT_EQ(job.Losses(), undisturbed.losses);
    ASSERT_EQ(end.switches_size(), 1);
    EXPECT_GE(end.switches(0).at_step(), saved.last_checkpoint_step());
  }
}

}  // namespace
}  // namespace medley::worker
