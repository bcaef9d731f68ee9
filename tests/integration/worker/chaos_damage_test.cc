// The checkpoints of a job are damaged while its processes are killed and stopped: every job trains every sample
// exactly once, or fails at once with a true sentence.
//
// MEDLEY_CHAOS_SEEDS=1-50 build/tests/worker_chaos_test --gtest_filter='*Damage*' runs 50 seeds; each is of another
// kind of job than the one before. ctest runs three, of half the length.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "common/base/testing/soak.h"
#include "tests/integration/worker/chaos.h"
#include "tests/integration/worker/chaos_jobs.h"
#include "tests/integration/worker/train_job.h"
#include "worker/checkpoint/reader.h"

namespace medley::worker::chaos_damage_test {
namespace {

namespace pb = ::medley::job::v1;

struct KindOfJob {
  const char* name;
  JobOptions options;
  std::vector<JobShape> shapes;
  bool as_one_process = false;  // the losses of all its plans are the same
};

std::vector<KindOfJob> KindsOfJobs() {
  return {{"parameter servers", WithTables(), Synchronous(), true},
          {"asynchronous stages", WithoutTables(), Asynchronous()},
          {"exported from PyTorch", Exported(), OfExported()},
          {"placements", WithoutTables(), Placed()},
          {"replicas that differ", WithoutTables(), Differing()},
          {"reductions during the next step", WithoutTables(), Overlapping()},
          {"without undo", WithTables(), WithoutUndo(), true}};
}

// A failed job says that no checkpoint can be restored, and none can.
void CheckFailure(const pb::Observation& end, const Chaos& chaos, const JobHarness& job) {
  const std::string where = end.message() + chaos.story() + job.AllLogs();
  ASSERT_EQ(end.phase(), pb::JOB_PHASE_FAILED) << where;
  EXPECT_TRUE(chaos.may_fail()) << where;
  EXPECT_FALSE(end.retryable()) << where;
  EXPECT_NE(end.message().find("no checkpoint can be restored"), std::string::npos) << where;
  EXPECT_NE(end.message().find("To start anew, delete the job and create it again"), std::string::npos) << where;
  const auto found = FindCheckpoint(Volume(job.checkpoints()), JobHarness::kUid, "");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->manifest.has_value()) << where;
  for (const RejectedCheckpoint& rejected : found->rejected) {
    if (rejected.why != RejectedCheckpoint::Why::kUnusable) continue;
    const bool said = end.message().find(rejected.reason) != std::string::npos;
    EXPECT_TRUE(said || end.message().find(" more)") != std::string::npos) << rejected.reason << where;
  }
}

TEST(ChaosTest, DamagedCheckpointsToo) {
  const int seeds = base::Rounds(3, 21);
  const bool few = std::getenv("MEDLEY_CHAOS_SEEDS") == nullptr && seeds < 21;
  const ChaosLength length{.rows = few ? 400 : 800, .epochs = 30, .batch_size = 16, .actions = few ? 6 : 12};
  const auto data = std::filesystem::temp_directory_path() / ("medley-damage-" + std::to_string(getpid()) + ".csv");
  CopyLines(ExampleData("adult.train.csv"), data, length.rows);
  const std::vector<KindOfJob> kinds = KindsOfJobs();
  const auto [first, last] = ChaosSeeds(static_cast<uint64_t>(seeds));
  for (uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) {
    const KindOfJob& kind = kinds[(seed - 1) % kinds.size()];
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + kind.name);
    JobOptions options = kind.options;
    options.train = data;
    options.epochs = length.epochs;
    options.batch_size = length.batch_size;
    options.checkpoint_interval = "1s";
    options.keep = seed % 2 == 0 ? 1 : 3;  // two are kept even so
    std::optional<Outcome> undisturbed;
    if (kind.as_one_process) undisturbed = Train(options, OneProcess());
    JobHarness job(options);
    Chaos chaos(seed, length, true, kind.shapes, job);
    chaos.Begin();
    while (chaos.actions() < length.actions && job.Steps() < length.steps() && !chaos.over()) chaos.Act();
    const pb::Observation end = job.WaitForEnd(base::seconds(180));
    const bool complete = end.phase() == pb::JOB_PHASE_COMPLETE;
    if (!complete) CheckFailure(end, chaos, job);
    if (complete) {
      EXPECT_EQ(end.samples_done(), int64_t{length.rows} * length.epochs) << chaos.story();
      EXPECT_EQ(job.Steps(), length.steps()) << chaos.story();  // none of them twice
      if (undisturbed) {
        EXPECT_LT(LargestDifference(*undisturbed, {.losses = job.Losses()}), kSameLosses) << chaos.story();
      }
    }
    const ChaosCounts& counts = chaos.counts();
    std::printf(
        "seed %lu, %s: %s; the newest checkpoint damaged %d times, all %d times; %d members killed, %d processes "
        "stopped, %d coordinators killed, %d hand-overs, %d plans; %d recoveries\n",
        static_cast<unsigned long>(seed), kind.name, complete ? "complete" : "failed with the reason", counts.damages,
        counts.losses, counts.kills, counts.stops, counts.coordinators, counts.hand_overs, counts.plans,
        static_cast<int>(end.restarts()));
    std::fflush(stdout);
  }
  std::filesystem::remove(data);
}

}  // namespace
}  // namespace medley::worker::chaos_damage_test
