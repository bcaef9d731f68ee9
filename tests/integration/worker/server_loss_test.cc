// A parameter server that is killed costs no step: its rows are rebuilt from the last checkpoint and the pushes that
// trainers have kept (docs/adr/0083-a-lost-server-is-given-its-pushes-again.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>

#include "common/base/rng.h"
#include "common/base/testing/soak.h"
#include "common/base/testing/status_matchers.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"
#include "tests/integration/worker/train_job.h"
#include "worker/checkpoint/reader.h"

namespace medley::worker::server_loss_test {
namespace {

namespace pb = ::medley::job::v1;

constexpr char kRebuilt[] = "are rebuilt from";

// Bits of all rows, with their optimizer state, and of all other parameters.
using Bits = std::map<std::pair<int, std::string>, std::vector<uint32_t>>;

Bits BitsOfTheEnd(const JobHarness& job) {
  Bits bits;
  const auto found = FindCheckpoint(Volume(job.checkpoints()), "", "");
  EXPECT_THAT(found, base::IsOk());
  EXPECT_TRUE(found.ok() && found->manifest.has_value());
  if (!found.ok() || !found->manifest) return bits;
  const auto add = [&](int operation, const std::string& name, std::span<const float> values) {
    for (const float value : values) bits[{operation, name}].push_back(std::bit_cast<uint32_t>(value));
  };
  CheckpointHandlers handlers;
  handlers.dense = [&](int32_t operation, std::string_view name, std::span<const float> weights,
                       std::span<const float> state) {
    add(operation, std::string(name), weights);
    add(operation, std::string(name) + ", state", state);
    return absl::OkStatus();
  };
  handlers.rows = [&](int32_t table, int32_t width, std::span<const uint64_t> keys, std::span<const float> values) {
    const auto floats = static_cast<size_t>(width);
    for (size_t k = 0; k < keys.size(); ++k) {
      add(table, "row " + std::to_string(keys[k]), values.subspan(k * floats, floats));
    }
    return absl::OkStatus();
  };
  EXPECT_THAT(ReadCheckpoint(Volume(job.checkpoints()), *found->manifest, std::move(handlers)), base::IsOk());
  return bits;
}

class ServerLossTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { table_.emplace(); }
  static void TearDownTestSuite() {
    undisturbed_.clear();
    table_.reset();
  }
  void SetUp() override {
    options_.embedding_rows = 4096;
    options_.schema =
        R"({"label": {"column": 14, "positive": ">50K"}, "categorical": [1, 3, 5, 6, 7, 8, 9, 13],
            "numeric": [0, 2, 4, 10, 11, 12], "numericBuckets": 32})";
    options_.optimizer = "adam";
    options_.learning_rate = 0.01;
  }

  static pb::Observation WaitForStep(JobHarness& job, int64_t step) {
    return job.WaitFor(Reached(step), base::seconds(60));
  }
  // A job does not end before its kills while this lives. The slow trainer pushes no rows.
  static Slowed Hold(JobHarness& job) { return Slowed(job, "t1-0"); }
  void Start(JobHarness& job) {
    job.StartCoordinator();
    job.Apply(shape_, "start");
  }
  // The end of a job that nobody disturbs, of the options of SetUp. With the same plan, all bits are the same, so one
  // such job serves all tests with so many epochs.
  const Bits& Undisturbed() {
    Bits& bits = undisturbed_[options_.epochs];
    if (bits.empty()) {
      JobHarness job(options_);
      Start(job);
      ExpectComplete(job);
      bits = BitsOfTheEnd(job);
      EXPECT_GT(bits.size(), 150u);
    }
    return bits;
  }
  pb::Observation ExpectComplete(JobHarness& job) const {
    return worker::ExpectComplete(job, int64_t{SmallTable::kRows} * options_.epochs);
  }
  static void ExpectRebuilt(const pb::Observation& end) {
    for (const pb::SwitchRecord& record : end.switches()) {
      EXPECT_THAT(record.reason(), testing::HasSubstr(kRebuilt));
      EXPECT_LE(record.lost_steps(), 1) << record.reason();
    }
  }

  static inline std::optional<SmallTable> table_;
  static inline std::map<int, Bits> undisturbed_;  // by epochs
  JobOptions options_ = SmallJob(table_->file(), /*epochs=*/3);
  // Both trainers of the first stage push to both servers.
  const JobShape shape_{.stages = {{0, 1, 2}, {1, 4, 2}}, .servers = 2, .micro_batches = 2};
};

// At random moments: while steps are trained, checkpoints written, rows rebuilt. Sometimes both servers at once.
TEST_F(ServerLossTest, KilledServersChangeNoBit) {
  constexpr int kKills = 10;
  options_.epochs = 9;
  const int jobs = base::Rounds(1, 5);
  int kills = 0, recoveries = 0;
  std::array<int, 3> of = {};  // kills of server 0, of server 1, of both
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(jobs); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Rng rng(seed);
    base::SystemClock clock;
    JobHarness job(options_);
    Start(job);
    kills += KillAtRandom(job, rng, {.kills = kKills}, [&](int64_t) {
      clock.SleepFor(base::milliseconds(rng.Below(20)), {});
      const uint64_t who = rng.Below(5);
      if (who != 1) job.Kill("server-0");
      if (who == 1 || who == 4) job.Kill("server-1");
      ++of[who == 1 ? 1 : who == 4 ? 2 : 0];
    });
    const pb::Observation end = ExpectComplete(job);
    ExpectRebuilt(end);
    recoveries += end.switches_size();
    ASSERT_TRUE(BitsOfTheEnd(job) == Undisturbed());
  }
  std::printf("%d kills of servers, %d recoveries\n", kills, recoveries);
  EXPECT_GE(kills, jobs * kKills * 3 / 4) << "the job is too short for its kills";
  EXPECT_GE(recoveries, kills / 2);
  EXPECT_GT(std::ranges::min(of), 0) << "take another seed";
}

// The journal says which checkpoint is the last, the trainers which pushes they keep.
TEST_F(ServerLossTest, TheCoordinatorIsKilledWithAServer) {
  JobHarness job(options_);
  Start(job);
  int lost = 0;
  for (const int64_t step : {20, 50}) {
    const Slowed held = Hold(job);
    ASSERT_FALSE(IsOver(WaitForStep(job, step)));
    job.Kill("server-1");
    job.Kill("coordinator");
    job.StartCoordinator();
    AfterSwitches(job, ++lost, 3);
  }
  const pb::Observation end = ExpectComplete(job);
  EXPECT_GE(end.switches_size(), 2);
  ExpectRebuilt(end);
  EXPECT_TRUE(BitsOfTheEnd(job) == Undisturbed());
}

// Its pushes are lost with it, so all return to the checkpoint, and the reason says so.
TEST_F(ServerLossTest, ATrainerIsKilledWithAServer) {
  options_.checkpoint_interval = "4s";  // no other checkpoint may follow before the kills
  JobHarness job(options_);
  Start(job);
  int64_t at = 0;
  {
    const Slowed held = Hold(job);
    const auto has_pushes = [](const pb::Observation& o) {
      return IsOver(o) || (o.last_checkpoint_step() > 0 && o.step() >= o.last_checkpoint_step() + 5);
    };
    at = job.WaitFor(has_pushes, base::seconds(60)).step();
    job.Kill("t0-1");
    job.Kill("server-0");
  }
  const pb::Observation end = ExpectComplete(job);
  ASSERT_GE(end.switches_size(), 1);
  EXPECT_THAT(end.switches(0).reason(), testing::HasSubstr("lost rows cannot be rebuilt: the pushes of step"));
  EXPECT_LT(end.switches(0).at_step(), at);
  // A trainer less adds in another order for a while, so the losses are compared.
  const Outcome undisturbed = Train(options_, {.stages = {{0, 4, 1}}});
  EXPECT_LT(LargestDifference(undisturbed, {.losses = job.Losses()}), 1e-4);
}

// When a trainer is lost its pushes are, so a checkpoint follows at once, and after it servers can be lost again.
TEST_F(ServerLossTest, AfterTheLossOfATrainerACheckpointMakesServersReplaceable) {
  options_.checkpoint_interval = "3600s";
  JobHarness job(options_);
  Start(job);
  {
    const Slowed held = Hold(job);
    WaitForStep(job, 40);
    job.Kill("t0-1");
    const auto saved = [](const pb::Observation& o) { return o.last_checkpoint_step() > 0 || IsOver(o); };
    const pb::Observation now = job.WaitFor(saved, base::seconds(60));
    ASSERT_FALSE(IsOver(now)) << "the interval is an hour";
    job.Kill("server-0");
  }
  const pb::Observation end = ExpectComplete(job);
  const auto& records = end.switches();
  const auto rebuilt = std::ranges::find_if(
      records, [](const auto& record) { return record.reason().find(kRebuilt) != std::string::npos; });
  ASSERT_NE(rebuilt, records.end()) << end.ShortDebugString();
  EXPECT_LE(rebuilt->lost_steps(), 1);
}

// The job stands still and says for whom it waits.
TEST_F(ServerLossTest, AReplacementMayComeLate) {
  JobHarness job(options_);
  Start(job);
  {
    const Slowed held = Hold(job);
    WaitForStep(job, 30);
    job.Kill("server-0", /*restart=*/false);
  }
  const auto waits = [](const pb::Observation& o) {
    return IsOver(o) || (o.phase() == pb::JOB_PHASE_RECOVERING && o.missing_members_size() > 0);
  };
  const pb::Observation now = job.WaitFor(waits, base::seconds(60));
  ASSERT_EQ(now.phase(), pb::JOB_PHASE_RECOVERING);
  EXPECT_EQ(now.missing_members(0), "server-0");
  EXPECT_THAT(now.message(), testing::HasSubstr("server-0"));
  base::SystemClock().SleepFor(base::milliseconds(1500), {});
  job.Kill("server-0", /*restart=*/true);
  ExpectRebuilt(ExpectComplete(job));
  EXPECT_TRUE(BitsOfTheEnd(job) == Undisturbed());
}

TEST_F(ServerLossTest, TwoJobsLoseServersAtTheSameTime) {
  JobHarness one(options_), two(options_);
  Start(one);
  Start(two);
  for (const int64_t step : {20, 50, 80}) {
    const Slowed first = Hold(one), second = Hold(two);
    ASSERT_FALSE(IsOver(WaitForStep(one, step)) || IsOver(WaitForStep(two, step)));
    one.Kill("server-0");
    two.Kill("server-0");
    two.Kill("server-1");
  }
  ExpectRebuilt(ExpectComplete(one));
  ExpectRebuilt(ExpectComplete(two));
  EXPECT_TRUE(BitsOfTheEnd(one) == Undisturbed());
  EXPECT_TRUE(BitsOfTheEnd(two) == Undisturbed());
}

// Kills of a server and of a trainer in turn. The figure is judged by ./dev bench recovery, because other work of the
// machine adds to it.
TEST_F(ServerLossTest, AServerCostsAsLittleAsATrainer) {
  const int rounds = base::Rounds(1, 12);
  JobOptions options;
  options.train = ExampleData("adult.train.csv");
  options.epochs = 1000;  // enough that the job does not end before the test
  options.checkpoint_interval = "60s";
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply({.stages = {{0, 1, 2}, {1, 5, 2}}, .servers = 2}, "start");
  WaitForStep(job, base::Rounds(100, 200));
  std::vector<double> pauses[2];
  int64_t most_lost[2] = {0, 0};
  for (int i = 0; i < 2 * rounds; ++i) {
    const int of = i % 2;
    // Until all members train again, and many pushes are kept: some seconds of them in ./dev soak.
    job.WaitFor(
        [](const pb::Observation& o) {
          return IsOver(o) || (o.phase() == pb::JOB_PHASE_TRAINING && o.missing_members().empty());
        },
        base::seconds(60));
    const int64_t step = job.Observe().step();
    const pb::Observation before = WaitForStep(job, step + base::Rounds(150, 400));
    ASSERT_FALSE(HasFailure()) << "kill " << i;
    const int64_t last = before.switches_size() == 0 ? 0 : before.switches().rbegin()->to_generation();
    const std::string victim = of == 0 ? "server-" + std::to_string(i / 2 % 2) : "t0-" + std::to_string(i / 2 % 2);
    job.Kill(victim);
    const auto recovered = [&](const pb::Observation& o) {
      return IsOver(o) || (o.phase() == pb::JOB_PHASE_TRAINING && o.switches_size() > 0 &&
                           o.switches().rbegin()->to_generation() > last);
    };
    const pb::Observation now = job.WaitFor(recovered, base::seconds(60));
    ASSERT_FALSE(HasFailure()) << "kill " << i;
    const auto record = std::ranges::find_if(now.switches(), [&](const pb::SwitchRecord& switched) {
      return switched.to_generation() > last && switched.recovery();
    });
    ASSERT_NE(record, now.switches().end()) << now.ShortDebugString();
    std::printf("%s: %.3f s, %ld steps: %s\n", victim.c_str(), record->pause_seconds(),
                static_cast<long>(record->lost_steps()), record->reason().c_str());
    EXPECT_EQ(record->reason().find(kRebuilt) != std::string::npos, of == 0);
    pauses[of].push_back(record->pause_seconds());
    most_lost[of] = std::max(most_lost[of], record->lost_steps());
  }
  for (const int of : {0, 1}) {
    std::ranges::sort(pauses[of]);
    std::printf("pause of %d kills of a %s: median %.0f ms, worst %.0f ms; at most %ld steps again\n", rounds,
                of == 0 ? "server" : "trainer", 1e3 * pauses[of][pauses[of].size() / 2], 1e3 * pauses[of].back(),
                static_cast<long>(most_lost[of]));
  }
  EXPECT_LE(most_lost[0], 5);
}

}  // namespace
}  // namespace medley::worker::server_loss_test
