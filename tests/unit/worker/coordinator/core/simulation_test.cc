// Runs random simulations: whatever happens, the surviving state contains every sample exactly once at the end.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <vector>

#include "common/base/testing/soak.h"
#include "tests/unit/worker/coordinator/core/sim_world.h"

namespace medley::worker::sim {
namespace {

// ./dev test runs a third of the seeds, and expects a third of what they must contain.
const int kShare = base::Rounds(3, 1);

// The last of so many seeds in ./dev soak.
uint64_t Last(uint64_t first, int seeds) { return first + static_cast<uint64_t>(seeds / kShare) - 1; }

TEST(SimulationTest, NothingHappens) {
  World world({.seed = 1, .disturbances = 0});
  EXPECT_EQ(world.Run(), "");
  EXPECT_EQ(world.last().samples_done(), 122);
  EXPECT_EQ(world.last().restarts(), 0);
}

TEST(SimulationTest, WithCheckpoints) {
  int kills = 0;
  int recoveries = 0;
  int64_t rescales = 0;
  int hand_overs = 0;
  for (uint64_t seed = 1; seed <= Last(1, 300); ++seed) {
    World world({.seed = seed, .disturbances = 10});
    ASSERT_EQ(world.Run(), "") << "seed " << seed;
    kills += world.kills();
    hand_overs += world.hand_overs();
    for (const job::v1::SwitchRecord& record : world.last().switches()) {
      recoveries += record.recovery() ? 1 : 0;
      rescales += record.recovery() ? 0 : 1;
      EXPECT_GT(record.to_generation(), record.from_generation()) << "seed " << seed;
    }
  }
  // The simulations must contain enough disturbances.
  EXPECT_GT(kills, 300 / kShare);
  EXPECT_GT(recoveries, 300 / kShare);
  EXPECT_GT(rescales, 100 / kShare);
  EXPECT_GT(hand_overs, 300 / kShare);
}

// Plans with servers and plans whose trainers keep the rows follow each other. A trainer that is killed takes its shard
// with it, so the state comes from a checkpoint, or the seed.
TEST(SimulationTest, ShardsInTrainers) {
  int kills = 0, recoveries = 0;
  int64_t rescales = 0;
  for (uint64_t seed = 9001; seed <= Last(9001, 300); ++seed) {
    World world({.seed = seed, .disturbances = 10, .checkpoints = seed % 4 != 0, .rows_in_trainers = true});
    ASSERT_EQ(world.Run(), "") << "seed " << seed;
    kills += world.kills();
    for (const job::v1::SwitchRecord& record : world.last().switches()) {
      recoveries += record.recovery() ? 1 : 0;
      rescales += record.recovery() ? 0 : 1;
      EXPECT_EQ(record.member().find('/'), std::string::npos) << "seed " << seed << ": " << record.ShortDebugString();
    }
  }
  EXPECT_GT(kills, 300 / kShare);
  EXPECT_GT(recoveries, 300 / kShare);
  EXPECT_GT(rescales, 100 / kShare);
}

// Plans with servers and plans whose tables are at a trainer follow each other: every such move goes through a
// checkpoint, and loses no step unless something else is lost.
TEST(SimulationTest, TablesMoveBetweenATrainerAndServers) {
  int kills = 0, recoveries = 0;
  int64_t rescales = 0;
  for (uint64_t seed = 11001; seed <= Last(11001, 300); ++seed) {
    World world({.seed = seed, .disturbances = 10, .rows = 121, .lag = seed % 5 == 0 ? 3 : 1, .whole_tables = true});
    ASSERT_EQ(world.Run(), "") << "seed " << seed;
    kills += world.kills();
    for (const job::v1::SwitchRecord& record : world.last().switches()) {
      recoveries += record.recovery() ? 1 : 0;
      rescales += record.recovery() ? 0 : 1;
      if (record.recovery()) continue;
      EXPECT_EQ(record.lost_steps(), 0) << "seed " << seed << ": " << record.ShortDebugString();
    }
  }
  EXPECT_GT(kills, 300 / kShare);
  EXPECT_GT(recoveries, 300 / kShare);
  EXPECT_GT(rescales, 100 / kShare);
}

// Whatever it does meanwhile: switches, checkpoints, evaluation.
TEST(SimulationTest, HandOversAlone) {
  int hand_overs = 0;
  int64_t recoveries = 0;
  for (uint64_t seed = 2001; seed <= Last(2001, 200); ++seed) {
    World world({.seed = seed, .disturbances = 20, .rows = 201, .only_hand_overs = true});
    ASSERT_EQ(world.Run(), "") << "seed " << seed;
    hand_overs += world.hand_overs();
    recoveries += world.last().restarts();
    for (const job::v1::SwitchRecord& record : world.last().switches()) {
      EXPECT_EQ(record.lost_steps(), 0) << "seed " << seed << ": " << record.ShortDebugString();
    }
  }
  EXPECT_GT(hand_overs, 1000 / kShare);
  EXPECT_LT(recoveries, hand_overs / 20) << "only an evaluation begins again in another generation";
}

// Each due step is evaluated exactly once in the history that counts, whatever interrupts it.
TEST(SimulationTest, WithEvaluationsBetweenSteps) {
  for (uint64_t seed = 3001; seed <= Last(3001, 150); ++seed) {
    World world({.seed = seed, .disturbances = 10, .checkpoints = seed % 3 != 0, .evaluate_every = 5});
    ASSERT_EQ(world.Run(), "") << "seed " << seed;
    std::vector<int64_t> steps;
    for (const job::v1::EvaluationRecord& record : world.last().evaluations()) steps.push_back(record.step());
    ASSERT_EQ(steps, (std::vector<int64_t>{5, 10, 15, 20, 25, 30, 32})) << "seed " << seed;
  }
}

// Whatever is killed, the best of the evaluated models is exported, and the test data are seen once, by that one.
TEST(SimulationTest, TheBestModelIsExported) {
  int kills = 0, restarts = 0;
  for (uint64_t seed = 7001; seed <= Last(7001, 150); ++seed) {
    const bool validation = seed % 2 == 0;
    World world({.seed = seed,
                 .disturbances = 10,
                 .evaluate_every = 5,
                 .lag = seed % 5 == 0 ? 3 : 1,
                 .keep_best = true,
                 .validation = validation});
    ASSERT_EQ(world.Run(), "") << "seed " << seed;
    int64_t best = 0;
    for (const job::v1::EvaluationRecord& record : world.last().evaluations()) {
      if (best == 0 || ScoreOf(record.step()) > ScoreOf(best)) best = record.step();
    }
    EXPECT_EQ(best, 15) << "of 5, 10, 15, 20, 25, 30 and 32, seed " << seed;
    ASSERT_EQ(world.exported(), best) << "seed " << seed;
    EXPECT_EQ(world.last().exported().step(), best) << "seed " << seed;
    EXPECT_TRUE(world.last().exported().best()) << "seed " << seed;
    EXPECT_EQ(world.last().best().value(), ScoreOf(best)) << "seed " << seed;
    EXPECT_EQ(world.last().metrics().at("score"), ScoreOf(best)) << "seed " << seed;
    EXPECT_EQ(world.tested(), validation ? std::set<int64_t>{best} : std::set<int64_t>{}) << "seed " << seed;
    EXPECT_EQ(world.last().samples_done(), 122) << "the ledger is that of the whole training, seed " << seed;
    EXPECT_LE(world.most_kept(), 4) << "two, the best and the best before, seed " << seed;
    kills += world.kills();
    restarts += static_cast<int>(world.last().restarts());
  }
  EXPECT_GT(kills, 150 / kShare);
  EXPECT_GT(restarts, 150 / kShare);
}

// Members keep several steps open, and drain before evaluations, switches, hand-overs and the end.
TEST(SimulationTest, AsynchronousSchedules) {
  int recoveries = 0;
  for (uint64_t seed = 4001; seed <= Last(4001, 300); ++seed) {
    World world({.seed = seed,
                 .disturbances = 10,
                 .checkpoints = seed % 3 != 0,
                 .rows = 121,
                 .evaluate_every = seed % 2 == 0 ? 7 : 0,
                 .lag = 2 + static_cast<int>(seed % 4)});
    ASSERT_EQ(world.Run(), "") << "seed " << seed;
    for (const job::v1::SwitchRecord& record : world.last().switches()) recoveries += record.recovery() ? 1 : 0;
  }
  EXPECT_GT(recoveries, 200 / kShare);
}

// Members that keep nothing to undo return to the checkpoint when their steps differ.
TEST(SimulationTest, WithoutUndo) {
  int recoveries = 0, lost = 0;
  for (uint64_t seed = 6001; seed <= Last(6001, 300); ++seed) {
    World world(
        {.seed = seed, .disturbances = 10, .rows = 121, .lag = 1 + static_cast<int>(seed % 3), .without_undo = true});
    ASSERT_EQ(world.Run(), "") << "seed " << seed;
    for (const job::v1::SwitchRecord& record : world.last().switches()) {
      recoveries += record.recovery() ? 1 : 0;
      lost += record.lost_steps() > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(recoveries, 200 / kShare);
  EXPECT_GT(lost, 20 / kShare);
}

// Servers that are lost get the rows of the step at which the survivors are, unless a trainer no longer keeps a push.
TEST(SimulationTest, RowsOfLostServersAreRebuilt) {
  int rebuilt = 0, lost_steps = 0, explained = 0;
  for (uint64_t seed = 8001; seed <= Last(8001, 300); ++seed) {
    World world({.seed = seed,
                 .disturbances = 10,
                 .checkpoints = seed % 3 != 0,
                 .rows = 121,
                 .evaluate_every = seed % 2 == 0 ? 7 : 0,
                 .without_undo = seed % 5 == 0,
                 .keep_best = seed % 4 == 2 && seed % 3 != 0,
                 .kept_pushes = seed % 7 == 0 ? 3u : 100u});
    ASSERT_EQ(world.Run(), "") << "seed " << seed;
    rebuilt += world.rebuilt();
    for (const job::v1::SwitchRecord& record : world.last().switches()) {
      const bool by_pushes = record.reason().find("are rebuilt from") != std::string::npos;
      EXPECT_TRUE(!by_pushes || record.lost_steps() <= 1) << "seed " << seed << ": " << record.ShortDebugString();
      lost_steps += !by_pushes && record.lost_steps() > 1 ? 1 : 0;
      explained += record.reason().find("lost rows cannot be rebuilt: ") != std::string::npos ? 1 : 0;
    }
  }
  std::printf("%d servers rebuilt, %d recoveries without, %d say why not\n", rebuilt, lost_steps, explained);
  EXPECT_GT(rebuilt, 60 / kShare);
  EXPECT_GT(explained, 30 / kShare);
}

// Replicas agree in few steps, or only where the job needs it; no committed step is lost.
TEST(SimulationTest, ReplicasThatDiffer) {
  int recoveries = 0;
  for (uint64_t seed = 5001; seed <= Last(5001, 300); ++seed) {
    World world({.seed = seed,
                 .disturbances = 10,
                 .checkpoints = seed % 3 != 0,
                 .rows = 121,
                 .evaluate_every = seed % 4 == 0 ? 7 : 0,
                 .mode = seed % 2 == 0 ? plan::v1::SYNC_MODE_NONE : plan::v1::SYNC_MODE_PERCENTAGE});
    ASSERT_EQ(world.Run(), "") << "seed " << seed;
    for (const job::v1::SwitchRecord& record : world.last().switches()) recoveries += record.recovery() ? 1 : 0;
  }
  EXPECT_GT(recoveries, 200 / kShare);
}

// Slow trainers are left out and return, whatever happens meanwhile.
TEST(SimulationTest, SlowMembers) {
  int left_out = 0;
  int returned = 0;
  for (uint64_t seed = 6001; seed <= Last(6001, 300); ++seed) {
    const bool averages = seed % 5 == 0;
    World world({.seed = seed,
                 .disturbances = seed % 4 == 0 ? 0 : 10,
                 .checkpoints = seed % 3 != 0,
                 .rows = 601,
                 .evaluate_every = seed % 7 == 0 ? 50 : 0,
                 .lag = seed % 3 == 0 && !averages ? 2 : 1,
                 .mode = averages ? plan::v1::SYNC_MODE_PERCENTAGE : plan::v1::SYNC_MODE_FULL,
                 .slow_members = true});
    ASSERT_EQ(world.Run(), "") << "seed " << seed;
    for (const job::v1::SwitchRecord& record : world.last().switches()) {
      left_out += record.cause() == job::v1::SWITCH_CAUSE_MEMBER_SLOW ? 1 : 0;
      returned += record.cause() == job::v1::SWITCH_CAUSE_STANDBY_RETURNED ? 1 : 0;
    }
  }
  std::printf("%d left out, %d returned\n", left_out, returned);
  EXPECT_GT(left_out, 200 / kShare);
  EXPECT_GT(returned, 100 / kShare);
}

TEST(SimulationTest, WithoutCheckpoints) {
  for (uint64_t seed = 1001; seed <= Last(1001, 100); ++seed) {
    World world({.seed = seed, .disturbances = 8, .checkpoints = false});
    ASSERT_EQ(world.Run(), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace medley::worker::sim
