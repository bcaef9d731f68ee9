// A job whose processes of every role are killed and stopped at random moments, during switches to other plans and
// while another coordinator takes over too, trains every sample exactly once.
//
// MEDLEY_CHAOS_SEEDS=50 build/tests/worker_chaos_test: the figure in docs/design/figures.md. ctest runs two seeds.
// MEDLEY_CHAOS_FIRST_SEED=16 goes on after the first 15.
#include <gtest/gtest.h>

#include <cstdlib>

#include "common/base/rng.h"
#include "tests/integration/worker/job_harness.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;

constexpr int kRows = 1600;
constexpr int kEpochs = 30;
constexpr int kBatch = 16;
constexpr int kActions = 20;
constexpr auto kAsync = plan::v1::SCHEDULE_KIND_ASYNC_1F1B;
constexpr auto kGPipe = plan::v1::SCHEDULE_KIND_GPIPE;
constexpr size_t kSteps = size_t{kRows} / kBatch * kEpochs;

std::vector<JobShape> Synchronous() {
  return {
      {.stages = {{0, 1, 1}, {1, 4, 2}}, .servers = 2, .micro_batches = 2},
      {.stages = {{0, 4, 2}}, .servers = 1, .micro_batches = 2},
      {.stages = {{0, 2, 1}, {2, 4, 1}}, .servers = 2, .micro_batches = 4, .schedule = kGPipe},
  };
}

std::vector<JobShape> Asynchronous() {
  return {
      {.stages = {{0, 1, 1}, {1, 4, 2}}, .micro_batches = 2, .schedule = kAsync},
      {.stages = {{0, 1, 1}, {1, 2, 1}, {2, 4, 1}}, .micro_batches = 1, .schedule = kAsync},
      {.stages = {{0, 2, 2}, {2, 4, 1}}, .micro_batches = 1, .schedule = kAsync, .max_staleness = 1},
      {.stages = {{0, 2, 1}, {2, 4, 1}}, .micro_batches = 2},
  };
}

std::vector<JobShape> Differing() {
  constexpr auto kPercentage = plan::v1::SYNC_MODE_PERCENTAGE;
  return {
      {.stages = {{0, 4, 2}}, .micro_batches = 1, .mode = kPercentage, .fraction = 0.1},
      {.stages = {{0, 4, 3}}, .micro_batches = 1, .mode = plan::v1::SYNC_MODE_NONE},
      {.stages = {{.first = 0, .end = 4, .units = 4, .group = 2}}, .mode = kPercentage, .fraction = 0.3},
      {.stages = {{0, 4, 2}}, .mode = plan::v1::SYNC_MODE_FLEXIBLE, .target_ratio = 0.02},
      {.stages = {{0, 2, 1}, {2, 4, 1}}, .micro_batches = 2},
  };
}

// fc1 fc2 fc_out loss on devices of their own, in other places and orders, and as stages.
std::vector<JobShape> Placed() {
  const std::vector<std::string> three(3, "cpu"), four(4, "cpu");
  JobShape ordered{.placements = {{{{0, 1}, {2, 3}}, {0, 1}}, {{{1, 2}}, {2}}, {{{3, 4}}, {1}}},
                   .devices = three,
                   .micro_batches = 2,
                   .schedule = kGPipe};
  for (const uint32_t entry : {0, 3, 6, 9, 10, 7, 8, 11, 4, 5, 1, 2}) ordered.order.push_back(entry);
  return {
      {.placements = {{{{0, 1}}, {0, 1, 2}, {0.5, 0.25, 0.25}}, {{{1, 2}}, {1}}, {{{2, 4}}, {2, 0}}},
       .devices = three,
       .micro_batches = 2},
      ordered,
      {.placements = {{{{0, 2}}, {0, 1}}, {{{2, 4}}, {2, 3}}}, .devices = four, .micro_batches = 2, .schedule = kAsync},
      {.stages = {{0, 2, 2}, {2, 4, 1}}, .micro_batches = 2}};
}

// Reductions that go on during the next step, in small buckets, and plans without.
std::vector<JobShape> Overlapping() {
  std::vector<JobShape> shapes = {{.stages = {{0, 4, 2}}, .micro_batches = 1, .bucket_bytes = 1},
                                  {.stages = {{0, 1, 2}, {1, 4, 3}}, .micro_batches = 2, .bucket_bytes = 1},
                                  {.stages = {{0, 2, 1}, {2, 4, 1}}, .micro_batches = 2, .schedule = kGPipe},
                                  {.placements = {{{{0, 1}, {2, 4}}, {0, 1}}, {{{1, 2}}, {1, 2}}},
                                   .devices = std::vector<std::string>(3, "cpu"),
                                   .micro_batches = 1,
                                   .bucket_bytes = 1}};
  for (JobShape& shape : shapes) shape.overlap_next_step = true;
  shapes.push_back(Asynchronous().front());
  shapes.push_back(Asynchronous().back());
  return shapes;
}

// Where survivors have applied different steps, all return to the checkpoint.
std::vector<JobShape> WithoutUndo() {
  std::vector<JobShape> shapes = Synchronous();
  for (JobShape& shape : shapes) shape.without_undo = true;
  shapes.push_back(Synchronous().front());
  return shapes;
}

struct Counts {
  int kills = 0, stops = 0, coordinators = 0, plans = 0, hand_overs = 0;
};

class Chaos {
 public:
  Chaos(uint64_t seed, std::vector<JobShape> shapes, JobHarness& job)
      : random_(seed), shapes_(std::move(shapes)), job_(job) {}

  void Begin() {
    job_.StartCoordinator(term_);
    job_.Apply(shapes_[0], "start");
  }
  // Something happens, and then nothing for a random time: often less than a recovery or a switch takes.
  void Act() {
    ++actions_;
    switch (random_.Below(10)) {
      case 0:
        KillCoordinator();
        break;
      case 1:
        Stop(JobHarness::CoordinatorName(term_));
        break;
      case 8:
      case 9:
        HandOver();
        break;
      case 2:
      case 3:
        Stop(AnyMember());
        break;
      case 4:
      case 5:
        job_.Apply(shapes_[random_.Below(shapes_.size())], "chaos");
        ++counts_.plans;
        break;
      default:
        job_.Kill(AnyMember());
        ++counts_.kills;
    }
    Wait(random_.Below(1200), true);
  }
  const Counts& counts() const { return counts_; }
  int actions() const { return actions_; }

 private:
  // Each action has its share of the steps: a fast machine waits for less long, or the job would end before the chaos.
  void Wait(uint64_t milliseconds, bool poll) {
    const base::SteadyTime end = clock_.Steady() + base::milliseconds(milliseconds);
    const size_t share = kSteps * static_cast<size_t>(actions_) / (kActions + 1);
    do {
      EXPECT_TRUE(!poll || job_.Poll()) << "a process failed for good" << job_.AllLogs();
      clock_.SleepFor(base::milliseconds(20), {});
    } while (clock_.Steady() < end && job_.Losses().size() < share);
  }
  std::string AnyMember() {
    job_.Poll();
    const std::vector<std::string> members = job_.Running();
    return members[random_.Below(members.size())];
  }
  void KillCoordinator() {
    job_.Kill(JobHarness::CoordinatorName(term_));
    job_.StartCoordinator(term_);
    ++counts_.coordinators;
  }
  // Another coordinator takes over. The old one, the new one or both may be killed at any moment of it; the new one is
  // started again, as by a kubelet.
  void HandOver() {
    const std::string old = JobHarness::CoordinatorName(term_++);
    job_.StartCoordinator(term_);
    job_.Follow(term_);
    ++counts_.hand_overs;
    const uint64_t what = random_.Below(5);
    if (what > 2) return;
    Wait(random_.Below(600), false);
    if (what != 0) job_.Kill(old);
    if (what != 1) job_.Kill(JobHarness::CoordinatorName(term_));
    if (what != 1) job_.StartCoordinator(term_);
    counts_.coordinators += what == 2 ? 2 : 1;
  }
  // SIGSTOP for a while: the process does not notice, the others may take it for lost.
  void Stop(const std::string& name) {
    job_.Pause(name);
    Wait(random_.Below(2500), false);
    job_.Resume(name);
    ++counts_.stops;
  }

  base::SystemClock clock_;
  base::Rng random_;
  const std::vector<JobShape> shapes_;
  JobHarness& job_;
  Counts counts_;
  int actions_ = 0;
  int term_ = 1;
};

uint64_t NumberFrom(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// `seeds`: how many, where the environment does not say.
void RunSeeds(JobOptions options, const std::vector<JobShape>& shapes, uint64_t seeds) {
  const uint64_t first = NumberFrom("MEDLEY_CHAOS_FIRST_SEED", 1);
  const auto data = std::filesystem::temp_directory_path() / ("medley-chaos-" + std::to_string(getpid()) + ".csv");
  CopyLines(ExampleData("adult.train.csv"), data, kRows);
  options.train = data;
  options.epochs = kEpochs;
  options.batch_size = kBatch;
  options.checkpoint_interval = "1s";
  const uint64_t last = NumberFrom("MEDLEY_CHAOS_SEEDS", seeds);
  for (uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    JobHarness job(options);
    Chaos chaos(seed, shapes, job);
    chaos.Begin();
    while (chaos.actions() < kActions && job.Losses().size() < kSteps) chaos.Act();
    const pb::Observation end = job.WaitForEnd(base::seconds(180));
    ASSERT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
    EXPECT_EQ(end.samples_done(), int64_t{kRows} * kEpochs);
    EXPECT_EQ(job.Losses().size(), kSteps);  // none of them twice
    EXPECT_EQ(chaos.actions(), kActions) << "the job is too short for its kills";
    const Counts& counts = chaos.counts();
    std::printf(
        "seed %lu: %d members killed, %d processes stopped, %d coordinators killed, %d hand-overs, %d plans; "
        "%d recoveries\n",
        static_cast<unsigned long>(seed), counts.kills, counts.stops, counts.coordinators, counts.hand_overs,
        counts.plans, static_cast<int>(end.restarts()));
    std::fflush(stdout);
  }
  std::filesystem::remove(data);
}

TEST(ChaosTest, EverySampleIsTrainedOnceWhateverIsKilledOrStopped) {
  RunSeeds({.hidden = {8}, .embedding_rows = 512}, Synchronous(), 2);
}

TEST(ChaosTest, WithoutUndoToo) { RunSeeds({.hidden = {8}, .embedding_rows = 512}, WithoutUndo(), 1); }

// fc1 fc2 fc_out loss, without tables; wide, because steps of a small model are over before anything can happen.
JobOptions WithoutTables() {
  return {.model = "mlp",
          .tables = {},
          .hidden = {512, 512},
          .schema = R"({"label": {"column": 14, "positive": ">50K"}, "numeric": [0, 2, 4, 10, 11, 12]})"};
}

TEST(ChaosTest, AsynchronousSchedulesToo) { RunSeeds(WithoutTables(), Asynchronous(), 1); }
TEST(ChaosTest, PlacementsToo) { RunSeeds(WithoutTables(), Placed(), 1); }
TEST(ChaosTest, ReductionsDuringTheNextStepToo) { RunSeeds(WithoutTables(), Overlapping(), 1); }
TEST(ChaosTest, AsynchronousSchedulesWithoutUndoToo) {
  std::vector<JobShape> shapes = Asynchronous();
  for (JobShape& shape : shapes) shape.without_undo = true;
  RunSeeds(WithoutTables(), shapes, 1);
}
// Steps are reported when replicas agree, many at once; wider layers leave time for all actions before the last one.
TEST(ChaosTest, ReplicasThatDifferToo) {
  JobOptions options = WithoutTables();
  options.hidden = {1024, 1024};
  RunSeeds(options, Differing(), 1);
}

}  // namespace
}  // namespace medley::worker
