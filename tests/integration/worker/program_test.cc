// Jobs of programs on real medley-worker processes: a program is followed to its end, moves without losing a step, and
// is started again from its newest save when a rank or an agent is killed.
#include <gmock/gmock.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/soak.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "tests/integration/worker/job_harness.h"

namespace medley::worker::program_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ProgramJobTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("program-job"); }
  void TearDown() override { base::RemoveTempDir(folder_); }

  // tests/data/programs/ring.py, which ends after LetItEnd, or a command of sh. `every`: it saves after so many steps,
  // and not at a signal.
  JobOptions Options(int steps, double step_seconds, const std::string& shell = "", int every = 0) const {
    const std::string script = std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/tests/data/programs/ring.py";
    nlohmann::json command = {"python3",
                              script,
                              folder_.string(),
                              std::to_string(steps),
                              std::to_string(step_seconds),
                              (folder_ / "end").string()};
    if (!shell.empty()) command = {"sh", "-c", shell};
    if (every > 0) command.push_back(std::to_string(every));
    nlohmann::json spec = {
        {"program",
         {{"command", command},
          {"samplesPerStep", 8},
          {"steps", steps},
          {"progress", {{"log", R"(step (?P<step>\d+) loss (?P<loss>[\d.]+))"}}},
          {"checkpoint",
           {{"signal", "SIGUSR1"}, {"deadline", "20s"}, {"done", {{"file", (folder_ / "latest.json").string()}}}}}}},
        {"checkpoint", {{"interval", "1s"}}}};
    if (every > 0) spec["program"].erase("checkpoint");
    JobOptions options;
    options.spec_json = spec.dump();
    options.operations = 1;
    options.tables = {};
    return options;
  }
  static JobShape Units(int units, const std::string& pool = "cpu") {
    return {.stages = {{.first = 0, .end = 1, .units = units, .pool = pool}}, .micro_batches = 1};
  }
  void LetItEnd() const { std::ofstream(folder_ / "end").put('\n'); }
  // Waits until the job trains again after so many switches.
  static job::v1::Observation AfterSwitch(JobHarness& job, int switches) {
    return job.WaitFor(
        [=](const job::v1::Observation& seen) {
          return IsOver(seen) || (seen.switches_size() >= switches && seen.phase() == job::v1::JOB_PHASE_TRAINING);
        },
        base::seconds(60));
  }
  // The processes of this test's program, by rank.
  std::map<std::string, pid_t> Ranks() const {
    std::map<std::string, pid_t> ranks;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string command = base::ReadFile(entry.path() / "cmdline").value_or("");
      const std::string variables = std::string(1, '\0') + base::ReadFile(entry.path() / "environ").value_or("");
      const std::string name("\0RANK=", 6);
      const size_t at = variables.find(name);
      if (command.find(folder_.string()) == std::string::npos || at == std::string::npos) continue;
      const size_t from = at + name.size();
      ranks[variables.substr(from, variables.find('\0', from) - from)] = std::stoi(entry.path().filename());
    }
    return ranks;
  }
  // What the program has saved: each of its steps adds 1.
  void ExpectWhole(int steps) const {
    const auto state = nlohmann::json::parse(base::ReadFile(folder_ / "latest.json").value_or(""), nullptr, false);
    ASSERT_TRUE(state.is_object());
    EXPECT_EQ(state["step"], steps);
    EXPECT_EQ(state["sum"], steps);
  }
  // The loss on test data of the same program after so many steps that nothing disturbs.
  static double UndisturbedLoss(int steps) {
    const auto folder = *base::MakeTempDir("program-alone");
    const std::string script = std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/tests/data/programs/ring.py";
    const std::string command =
        fmt::format("RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=0 python3 {} {} {} 0 >/dev/null", script,
                    folder.string(), steps);
    EXPECT_EQ(std::system(command.c_str()), 0);
    const double loss = SavedLoss(folder);
    base::RemoveTempDir(folder);
    return loss;
  }
  static double SavedLoss(const std::filesystem::path& folder) {
    const auto state = nlohmann::json::parse(base::ReadFile(folder / "latest.json").value_or(""), nullptr, false);
    return state.is_object() ? state.value("test_loss", -1.0) : -1;
  }
  static auto Reached(int64_t step) {
    return [step](const job::v1::Observation& seen) { return seen.step() >= step; };
  }

  static constexpr int kSteps = 120;
  std::filesystem::path folder_;
};

TEST_F(ProgramJobTest, AProgramIsFollowedToItsEnd) {
  JobHarness job(Options(60, 0.02));
  LetItEnd();
  job.StartCoordinator();
  job.Apply(Units(2), "test");
  const auto seen = job.WaitForEnd();
  ASSERT_EQ(seen.phase(), job::v1::JOB_PHASE_COMPLETE) << job.AllLogs();
  EXPECT_EQ(seen.step(), 60);
  EXPECT_EQ(seen.samples_done(), 480);
  const std::vector<double> losses = job.Losses();
  ASSERT_EQ(losses.size(), 60u);
  EXPECT_NEAR(losses[9], 0.1, 1e-4);
  ExpectWhole(60);
}

TEST_F(ProgramJobTest, AMoveLosesNoStep) {
  JobHarness job(Options(kSteps, 0.04));
  job.StartCoordinator();
  job.Apply(Units(1), "first");
  job.WaitFor(Reached(50), base::seconds(60));
  job.Apply(Units(2), "the deadline is near");
  AfterSwitch(job, 1);
  LetItEnd();
  const auto seen = job.WaitForEnd();
  ASSERT_EQ(seen.phase(), job::v1::JOB_PHASE_COMPLETE) << job.AllLogs();
  ASSERT_EQ(seen.switches_size(), 1) << job.AllLogs();
  EXPECT_EQ(seen.switches(0).lost_steps(), 0);
  EXPECT_FALSE(seen.switches(0).recovery());
  EXPECT_GT(seen.switches(0).start_seconds(), 0);
  EXPECT_GT(seen.switches(0).pause_seconds(), seen.switches(0).start_seconds());
  RecordProperty("pause_seconds", std::to_string(seen.switches(0).pause_seconds()));
  EXPECT_EQ(seen.restarts(), 0);
  ExpectWhole(kSteps);
}

TEST_F(ProgramJobTest, AMoveOfAProgramThatCannotSaveAtASignalSaysWhatItCosts) {
  JobHarness job(Options(kSteps, 0.04, "", 1000));
  job.StartCoordinator();
  job.Apply(Units(1), "first");
  job.WaitFor(Reached(50), base::seconds(60));
  job.Apply(Units(2), "the deadline is near");
  AfterSwitch(job, 1);
  LetItEnd();
  const auto seen = job.WaitForEnd();
  ASSERT_EQ(seen.phase(), job::v1::JOB_PHASE_COMPLETE) << job.AllLogs();
  ASSERT_EQ(seen.switches_size(), 1) << job.AllLogs();
  EXPECT_GE(seen.switches(0).at_step(), 50);
  EXPECT_EQ(seen.switches(0).lost_steps(), seen.switches(0).at_step()) << "it begins again";
  ExpectWhole(kSteps);
}

TEST_F(ProgramJobTest, AKilledRankRestartsAllFromTheNewestSave) {
  JobHarness job(Options(kSteps, 0.03));
  job.StartCoordinator();
  job.Apply(Units(2), "test");
  job.WaitFor([](const auto& seen) { return seen.last_checkpoint_step() > 0; }, base::seconds(60));
  const auto ranks = Ranks();
  ASSERT_TRUE(ranks.contains("1")) << job.AllLogs();
  kill(ranks.at("1"), SIGKILL);
  AfterSwitch(job, 1);
  LetItEnd();
  const auto seen = job.WaitForEnd();
  ASSERT_EQ(seen.phase(), job::v1::JOB_PHASE_COMPLETE) << job.AllLogs();
  EXPECT_EQ(seen.restarts(), 1);
  ASSERT_EQ(seen.switches_size(), 1);
  EXPECT_TRUE(seen.switches(0).recovery());
  EXPECT_GT(seen.switches(0).at_step(), 0);
  EXPECT_THAT(seen.switches(0).reason(), HasSubstr("rank 1 was killed by SIGKILL"));
  ExpectWhole(kSteps);
}

TEST_F(ProgramJobTest, AKilledAgentTakesItsProcessesWithIt) {
  JobHarness job(Options(kSteps, 0.03));
  job.StartCoordinator();
  job.Apply(Units(2), "test");
  job.WaitFor([](const auto& seen) { return seen.last_checkpoint_step() > 0; }, base::seconds(60));
  job.Kill("t0-1");
  AfterSwitch(job, 1);
  LetItEnd();
  const auto seen = job.WaitForEnd();
  ASSERT_EQ(seen.phase(), job::v1::JOB_PHASE_COMPLETE) << job.AllLogs();
  EXPECT_GE(seen.restarts(), 1);
  ExpectWhole(kSteps);
  EXPECT_TRUE(Ranks().empty());
}

// A node is drained, and no unit is free: the program cannot run on the one that is left.
TEST_F(ProgramJobTest, AUnitThatLeavesWithoutAReplacementCostsNoStep) {
  JobOptions options = Options(1100, 0.03);  // longer than a unit stays that leaves
  nlohmann::json spec = nlohmann::json::parse(options.spec_json);
  spec["program"]["scaling"]["units"] = {2};
  spec["checkpoint"]["interval"] = "1h";
  options.spec_json = spec.dump();
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply(Units(2), "test");
  job.WaitFor(Reached(20), base::seconds(60));
  EXPECT_EQ(job.Terminate("t0-0"), 0) << job.Log("t0-0");
  EXPECT_TRUE(Ranks().empty() || !Ranks().contains("0"));
  job.Kill("t0-0");  // it has ended: the harness starts another one
  AfterSwitch(job, 1);
  LetItEnd();
  const auto seen = job.WaitForEnd();
  ASSERT_EQ(seen.phase(), job::v1::JOB_PHASE_COMPLETE) << job.AllLogs();
  ASSERT_EQ(seen.switches_size(), 1) << job.AllLogs();
  EXPECT_EQ(seen.switches(0).lost_steps(), 0) << job.AllLogs();
  EXPECT_EQ(seen.switches(0).cause(), job::v1::SWITCH_CAUSE_MEMBER_LEFT) << seen.switches(0).reason();
  ExpectWhole(1100);
}

// Ranks, agents and the coordinator are killed, ranks are stopped for a while, and the job moves, each at a random
// moment. The program's own state goes through all of it: each step is in it once.
TEST_F(ProgramJobTest, WhateverIsKilledOrStoppedTheProgramContinues) {
  const int actions = base::Rounds(5, 20);
  const int steps = 60 * actions;
  JobHarness job(Options(steps, 0.04));
  job.StartCoordinator(1);
  job.Apply(Units(2), "test");
  base::Rng random(21);
  base::SystemClock clock;
  int units = 2, done = 0;
  int64_t reached = 0;
  std::string story;
  for (; done < actions; ++done) {
    const auto seen = job.WaitFor(Reached(std::min<int64_t>(steps - 1, reached + 5)), base::seconds(120));
    reached = seen.step();
    if (HasFailure() || reached >= steps - 1) break;
    clock.SleepFor(base::milliseconds(random.Below(400)), {});
    const auto ranks = Ranks();
    const auto victim = ranks.find(std::to_string(random.Below(static_cast<uint64_t>(units))));
    switch (done % 5) {  // every kind, also in few actions
      case 0:
        if (victim != ranks.end()) kill(victim->second, SIGKILL);
        story += "a rank was killed; ";
        break;
      case 1:
        job.Kill(fmt::format("t0-{}", random.Below(static_cast<uint64_t>(units))));
        story += "an agent was killed; ";
        break;
      case 2:
        if (victim != ranks.end()) kill(victim->second, SIGSTOP);
        clock.SleepFor(base::milliseconds(200 + random.Below(1000)), {});
        if (victim != ranks.end()) kill(victim->second, SIGCONT);
        story += "a rank stood still; ";
        break;
      case 3:
        job.Kill(JobHarness::CoordinatorName(1));
        job.StartCoordinator(1);
        story += "the coordinator was killed; ";
        break;
      default:
        units = 3 - units;
        if (!job.TryApply(Units(units), "another size")) break;
        story += fmt::format("{} units were planned; ", units);
    }
  }
  EXPECT_EQ(done, actions) << "the job is too short for its kills: " << story;
  LetItEnd();
  const auto seen = job.WaitForEnd(base::seconds(180));
  ASSERT_EQ(seen.phase(), job::v1::JOB_PHASE_COMPLETE) << story << seen.message() << job.AllLogs();
  EXPECT_EQ(seen.step(), steps);
  ExpectWhole(steps);
  EXPECT_TRUE(Ranks().empty());
  // Sums of two ranks are rounded otherwise than those of one, and nothing else may differ.
  const double loss = SavedLoss(folder_), undisturbed = UndisturbedLoss(steps);
  EXPECT_GT(undisturbed, 0);
  EXPECT_NEAR(loss, undisturbed, 1e-9 * undisturbed);
  std::printf("%d actions, %d recoveries, test loss %.12f (undisturbed: %.12f): %s\n", done,
              static_cast<int>(seen.restarts()), loss, undisturbed, story.c_str());
}

TEST_F(ProgramJobTest, ProgramsThatCannotRunFailWithTheCause) {
  {
    JobHarness job(Options(10, 0, "exit 0"));
    job.StartCoordinator();
    job.Apply(Units(1), "test");
    const auto seen = job.WaitForEnd();
    EXPECT_EQ(seen.phase(), job::v1::JOB_PHASE_FAILED);
    EXPECT_FALSE(seen.retryable());
    EXPECT_THAT(seen.message(), HasSubstr("the program ended with 0 and reported no step"));
  }
  JobHarness job(Options(10, 0, "echo 'Traceback (most recent call last):'; echo 'ValueError: bad data'; exit 1"));
  job.StartCoordinator();
  job.Apply(Units(1), "test");
  const auto seen = job.WaitForEnd(base::seconds(120));
  EXPECT_EQ(seen.phase(), job::v1::JOB_PHASE_FAILED);
  EXPECT_THAT(seen.message(), AllOf(HasSubstr("gave up after"), HasSubstr("ValueError: bad data")));
}

TEST_F(ProgramJobTest, AProfileIsMeasured) {
  JobHarness job(Options(1000, 0.02));
  const auto log = job.RunProfiler("cpu");
  ASSERT_THAT(log, base::IsOk());
  const size_t at = log->rfind("MEDLEY-PROFILE ");
  ASSERT_NE(at, std::string::npos) << *log;
  EXPECT_THAT(log->substr(at), AllOf(HasSubstr("\"program\""), HasSubstr("measured")));
}

}  // namespace
}  // namespace medley::worker::program_test
