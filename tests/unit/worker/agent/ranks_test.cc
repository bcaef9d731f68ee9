#include "worker/agent/ranks.h"

#include <gmock/gmock.h>

#include <set>

namespace medley::worker {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::StartsWith;

TEST(RanksTest, AProcessGetsTheVariablesOfTorchrun) {
  const ProgramPlace place{.unit = 1,
                           .units = 3,
                           .processes = 2,
                           .master_address = "10.0.0.7",
                           .master_port = 29500,
                           .run_id = "job-1",
                           .restarts = 4,
                           .progress_port = 0};
  const auto variables = ChildEnvironment({"PATH=/bin", "RANK=9", "OMP_NUM_THREADS=3"}, place, 1);
  for (const char* each :
       {"PATH=/bin", "OMP_NUM_THREADS=3", "RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=6", "LOCAL_WORLD_SIZE=2",
        "GROUP_RANK=1", "GROUP_WORLD_SIZE=3", "MASTER_ADDR=10.0.0.7", "MASTER_PORT=29500",
        "TORCHELASTIC_RESTART_COUNT=4", "TORCHELASTIC_RUN_ID=job-1", "PYTHONUNBUFFERED=1"}) {
    EXPECT_THAT(variables, Contains(each));
  }
  EXPECT_THAT(variables, Not(Contains("RANK=9")));
}

TEST(RanksTest, NothingOfTheAgentReachesTheProgram) {
  const auto variables = ChildEnvironment(
      {"MEDLEY_TOKEN=secret", "MEDLEY_CREDENTIALS_DIR=/etc/medley/credentials", "MEDLEY_JOB_UID=1", "HOME=/"}, {}, 0);
  EXPECT_THAT(variables, Not(Contains(StartsWith("MEDLEY_"))));
  EXPECT_THAT(variables, Contains("HOME=/"));
  EXPECT_THAT(ChildEnvironment({}, {.progress_port = 81}, 0), Contains("MEDLEY_PROGRESS_PORT=81"));
}

// Whatever the sizes are, every rank is given once, and the ranks of a unit are consecutive.
TEST(RanksTest, RanksAreDense) {
  for (int units = 1; units <= 5; ++units) {
    for (int processes = 1; processes <= 4; ++processes) {
      std::set<std::string> ranks;
      for (int unit = 0; unit < units; ++unit) {
        for (int local = 0; local < processes; ++local) {
          for (const std::string& each :
               ChildEnvironment({}, {.unit = unit, .units = units, .processes = processes}, local)) {
            if (each.starts_with("RANK=")) ranks.insert(each);
          }
        }
      }
      EXPECT_EQ(ranks.size(), static_cast<size_t>(units * processes));
      EXPECT_TRUE(ranks.contains("RANK=0"));
      EXPECT_TRUE(ranks.contains("RANK=" + std::to_string(units * processes - 1)));
    }
  }
}

TEST(RanksTest, AUnitHasAProcessForEachGpu) {
  EXPECT_EQ(ProcessesOfUnit(0, ""), 1);
  EXPECT_EQ(ProcessesOfUnit(0, "0,1,2"), 3);
  EXPECT_EQ(ProcessesOfUnit(0, "GPU-7f"), 1);
  EXPECT_EQ(ProcessesOfUnit(0, "-1"), 1);
  EXPECT_EQ(ProcessesOfUnit(5, "0,1"), 5);
}

TEST(RanksTest, FoldersOfArgumentsAreExchanged) {
  EXPECT_THAT(WithFolder({"train", "/ck", "/ck/a", "/cks/a", "x/ck"}, "/ck/", "/tmp"),
              ElementsAre("train", "/tmp", "/tmp/a", "/cks/a", "x/ck"));
  EXPECT_THAT(WithFolder({"/a"}, "", "/tmp"), ElementsAre("/a"));
}

// The agent's own is that of its container or, under medley run, a safe one.
TEST(RanksTest, TheProgramMayHaveAnotherPath) {
  const std::vector<std::string> variables =
      ChildEnvironment({"PATH=/usr/bin", "MEDLEY_PROGRAM_PATH=/env/bin:/usr/bin"}, {}, 0);
  EXPECT_THAT(variables, testing::Contains("PATH=/env/bin:/usr/bin"));
  EXPECT_THAT(variables, testing::Not(testing::Contains("PATH=/usr/bin")));
  EXPECT_THAT(ChildEnvironment({"PATH=/usr/bin"}, {}, 0), testing::Contains("PATH=/usr/bin"));
}

}  // namespace
}  // namespace medley::worker
