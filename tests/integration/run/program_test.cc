// Tests `medley run` with jobs of programs: what a user with a script for torchrun sees.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/integration/run/run_fixture.h"

namespace medley::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class ProgramJobTest : public RunTest {
 protected:
  // Two offers of the same unit; at first east is cheaper.
  std::string Job(const std::string& command, int steps, const std::string& more = "") {
    std::string text;
    for (const char* place : {"east", "west"}) {
      text += fmt::format(R"(
apiVersion: medley.dev/v1alpha1
kind: ResourcePool
metadata: {{name: {0}, annotations: {{run.medley.dev/simulate: "true"}}}}
spec:
  class: CPU
  unit: {{resources: {{cpu: 300m, memory: 256Mi}}}}
  nodeSelector: {{medley.dev/machine: {0}}}
  limit: 2
  price: {{offering: {{provider: example, region: {0}, instanceType: small-1, capacityType: spot}}}}
---)",
                          place);
    }
    return text + fmt::format(R"(
apiVersion: medley.dev/v1alpha1
kind: TrainingJob
metadata: {{name: script, annotations: {{run.medley.dev/scenario: scenario.yaml}}}}
spec:
  program:
    command: {0}
    samplesPerStep: 8
    steps: {1}
    progress: {{log: 'step (?P<step>\d+) loss (?P<loss>[\d.]+)'}}
{2}
  elasticity: {{minUnits: 2, maxUnits: 2, replan: {{onPriceChange: true, minSaving: 10%, cooldown: 1s}}}}
  checkpoint: {{interval: 2s}}
  runPolicy: {{cleanPodPolicy: None}}
)",
                              command, steps, more);
  }
  void Prices(const std::string& name, double east, double west) {
    const auto line = [](const char* region, double usd) {
      return fmt::format(
          "- {{offering: {{provider: example, region: {}, instanceType: small-1, capacityType: spot}}, "
          "pricePerInstanceHour: {}}}\n",
          region, usd);
    };
    EXPECT_THAT(base::WriteFileAtomic(folder_ / name, "entries:\n" + line("east", east) + line("west", west)),
                base::IsOk());
  }
  void Scenario(const std::string& text) {
    Prices("prices.yaml", 0.05, 0.2);
    Prices("after.yaml", 1.6, 0.2);
    EXPECT_THAT(base::WriteFileAtomic(folder_ / "scenario.yaml", "prices: prices.yaml\n" + text), base::IsOk());
  }
  // It does not end before the file `end` exists.
  static std::string Ring(int steps, double seconds, const std::filesystem::path& end) {
    return fmt::format("[python3, {}, /checkpoints/ring, \"{}\", \"{}\", {}]",
                       (Source() / "tests/data/programs/ring.py").string(), steps, seconds, end.string());
  }
  // The process of rank 1 of two, other than `before`; 0: there is none in time.
  pid_t OneOfTwo(pid_t before) {
    const base::SteadyTime deadline = clock_.Steady() + base::Patience(base::seconds(60));
    while (clock_.Steady() < deadline) {
      const auto ranks = Ranks("ring.py");
      if (ranks.size() == 2 && ranks.contains("1") && ranks.at("1") != before) return ranks.at("1");
      clock_.SleepFor(base::milliseconds(50), {});
    }
    return 0;
  }
  // The processes of the program, by their rank.
  std::map<std::string, pid_t> Ranks(const std::string& script) const {
    std::map<std::string, pid_t> ranks;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string command = base::ReadFile(entry.path() / "cmdline").value_or("");
      if (command.find(script) == std::string::npos || command.find((folder_ / "run").string()) == std::string::npos) {
        continue;
      }
      const std::string variables = base::ReadFile(entry.path() / "environ").value_or("");
      const size_t at = variables.find(std::string("\0RANK=", 6));
      if (at == std::string::npos) continue;
      ranks[variables.substr(at + 6, variables.find('\0', at + 6) - at - 6)] = std::stoi(entry.path().filename());
    }
    return ranks;
  }
};

constexpr char kSaves[] =
    "    checkpoint: {signal: SIGUSR1, deadline: 20s, done: {file: /checkpoints/ring/latest.json}}\n"
    "    scaling: {units: [1, 2]}";

TEST_F(ProgramJobTest, MovesForAPriceAndGoesOnAfterARankIsKilled) {
  Scenario(R"(steps:
- {atPercent: 30, say: "the price of east jumps", prices: after.yaml}
expect: {rescales: 1, recoveries: 1}
)");
  const std::filesystem::path end = folder_ / "end";
  const auto run = StartManifest(Job(Ring(400, 0.06, end), 400, kSaves), {"--export", (folder_ / "saved").string()});
  ASSERT_TRUE(WaitForOutput("PriceChanged: move", base::seconds(120))) << Output();
  ASSERT_TRUE(WaitForOutput("Rescaled: generation 1 -> 2", base::seconds(60))) << Output();
  // Rank 1 of the new generation.
  const pid_t victim = OneOfTwo(0);
  ASSERT_NE(victim, 0) << Output();
  kill(victim, SIGKILL);
  ASSERT_NE(OneOfTwo(victim), 0) << "it is not started again" << Output();
  ASSERT_THAT(base::WriteFileAtomic(end, "\n"), base::IsOk());
  EXPECT_EQ(WaitForEnd(*run, base::seconds(240)), "exit code 0") << Output();
  const std::string output = Output();
  EXPECT_THAT(output, HasSubstr("the program runs without a container"));
  EXPECT_THAT(output, HasSubstr("Profiled: The program was measured on pool west"));
  EXPECT_THAT(output, HasSubstr("from planner program"));
  EXPECT_THAT(output, HasSubstr("was killed by SIGKILL"));
  EXPECT_THAT(output, HasSubstr("3,200 of 3,200"));
  // The program's own state went through all of it: each step counted once.
  const auto state =
      nlohmann::json::parse(base::ReadFile(folder_ / "saved/ring/latest.json").value_or(""), nullptr, false);
  ASSERT_TRUE(state.is_object()) << output;
  EXPECT_EQ(state["step"], 400);
  EXPECT_EQ(state["sum"], 400);
  EXPECT_TRUE(NoProcessIsLeft());
}

// Half of a step is repeated on each unit, so two are far from twice as fast as one, and the first plan knows it.
TEST_F(ProgramJobTest, TheFirstPlanKnowsHowTheProgramScales) {
  Scenario("");
  const std::string command =
      fmt::format("[python3, {}, \"300\"]", (Source() / "tests/data/programs/half_repeated.py").string());
  EXPECT_EQ(RunManifest(Job(command, 300, "    scaling: {units: [1, 2]}")), "exit code 0") << Output();
  const std::string output = Output();
  EXPECT_THAT(output, HasSubstr("as their processes compute on one.")) << "of each pool";
  // "... east: 0.05 s a step on one unit, 0.0375 on two and ..."
  std::smatch seconds;
  ASSERT_TRUE(
      std::regex_search(output, seconds, std::regex(R"(pool east: ([\d.]+) s a step on one unit, ([\d.]+) on two)")))
      << output;
  const double ratio = std::stod(seconds[2]) / std::stod(seconds[1]);
  EXPECT_GT(ratio, 0.62) << "0.75 without noise; 0.5 if nothing were known of two";
  EXPECT_LT(ratio, 0.95);
}

TEST_F(ProgramJobTest, SaysWhyAProgramCannotRun) {
  Scenario("");
  EXPECT_EQ(RunManifest(Job("[no-such-program]", 10)), "exit code 1") << Output();
  EXPECT_THAT(Output(), HasSubstr("the command 'no-such-program' cannot be started"));
}

}  // namespace
}  // namespace medley::cli
