// A job whose processes of every role are killed and stopped at random moments, during switches to other plans and
// while another coordinator takes over too, trains every sample exactly once. Where all its plans are synchronous, each
// step has the loss that it has in one process that nobody disturbs: no step is missing from the parameters, is in them
// twice, or was computed from other samples or rows.
//
// MEDLEY_CHAOS_SEEDS=50 build/tests/worker_chaos_test: the figure in docs/design/figures.md. ./dev test runs seed 1 of
// each kind of job, whose first ten actions are of every kind there is; ./dev soak runs five seeds of 20 actions.
// MEDLEY_CHAOS_SEEDS=16-20 runs these five of each test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "common/base/testing/soak.h"
#include "tests/integration/worker/chaos.h"
#include "tests/integration/worker/chaos_jobs.h"
#include "tests/integration/worker/train_job.h"

namespace medley::worker::chaos_test {
namespace {

namespace pb = ::medley::job::v1;

void RunSeeds(JobOptions options, const std::vector<JobShape>& shapes, bool as_one_process = false) {
  const int seeds = base::Rounds(1, 5);
  const bool few = std::getenv("MEDLEY_CHAOS_SEEDS") == nullptr && seeds == 1;
  const ChaosLength length = few ? ChaosLength{.rows = 800, .actions = 10} : ChaosLength();
  const auto data = std::filesystem::temp_directory_path() / ("medley-chaos-" + std::to_string(getpid()) + ".csv");
  CopyLines(ExampleData("adult.train.csv"), data, length.rows);
  options.train = data;
  options.epochs = length.epochs;
  options.batch_size = length.batch_size;
  options.checkpoint_interval = "1s";
  std::optional<Outcome> undisturbed;
  if (as_one_process) undisturbed = Train(options, OneProcess());
  const auto [first, last] = ChaosSeeds(static_cast<uint64_t>(seeds));
  for (uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    JobHarness job(options);
    Chaos chaos(seed, length, false, shapes, job);
    chaos.Begin();
    while (chaos.actions() < length.actions && job.Steps() < length.steps()) chaos.Act();
    const pb::Observation end = job.WaitForEnd(base::seconds(180));
    ASSERT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
    EXPECT_EQ(end.samples_done(), int64_t{length.rows} * length.epochs);
    EXPECT_EQ(job.Steps(), length.steps());  // none of them twice
    if (undisturbed) {
      EXPECT_LT(LargestDifference(*undisturbed, {.losses = job.Losses()}), kSameLosses);
    }
    EXPECT_EQ(chaos.actions(), length.actions) << "the job is too short for its kills";
    const ChaosCounts& counts = chaos.counts();
    const bool every_kind =
        std::min({counts.kills, counts.stops, counts.coordinators, counts.hand_overs, counts.plans}) > 0;
    EXPECT_TRUE(every_kind || !few) << "take another seed";
    std::printf(
        "seed %lu: %d members killed, %d processes stopped, %d coordinators killed, %d hand-overs, %d plans; "
        "%d recoveries\n",
        static_cast<unsigned long>(seed), counts.kills, counts.stops, counts.coordinators, counts.hand_overs,
        counts.plans, static_cast<int>(end.restarts()));
    std::fflush(stdout);
  }
  std::filesystem::remove(data);
}

TEST(ChaosTest, EverySampleIsTrainedOnceWhateverIsKilledOrStopped) { RunSeeds(WithTables(), Synchronous(), true); }

TEST(ChaosTest, WithoutUndoToo) { RunSeeds(WithTables(), WithoutUndo(), true); }

TEST(ChaosTest, AsynchronousSchedulesToo) { RunSeeds(WithoutTables(), Asynchronous()); }
TEST(ChaosTest, PlacementsToo) { RunSeeds(WithoutTables(), Placed()); }
TEST(ChaosTest, ReductionsDuringTheNextStepToo) { RunSeeds(WithoutTables(), Overlapping()); }
TEST(ChaosTest, AsynchronousSchedulesWithoutUndoToo) {
  std::vector<JobShape> shapes = Asynchronous();
  for (JobShape& shape : shapes) shape.without_undo = true;
  RunSeeds(WithoutTables(), shapes);
}
// Steps are reported when replicas agree, many at once; wider layers leave time for all actions before the last one.
TEST(ChaosTest, ReplicasThatDifferToo) {
  JobOptions options = WithoutTables();
  const int width = base::Rounds(512, 1024);
  options.hidden = {width, width};
  RunSeeds(options, Differing());
}

}  // namespace
}  // namespace medley::worker::chaos_test
