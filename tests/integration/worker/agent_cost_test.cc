// What an agent takes from its unit while a program reports ten steps a second: memory and processor time.
#include <elf.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/base/file.h"
#include "common/base/testing/patience.h"
#include "common/base/testing/soak.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "tests/integration/worker/job_harness.h"

namespace medley::worker::agent_cost_test {
namespace {

constexpr double kMostMebibytes = 20;
// Measured: 0.003 of a core of a Xeon with AVX-512, 0.0054 of an AMD EPYC's.
constexpr double kMostOfACore = 0.008;
constexpr double kStepsPerSecond = 10;

bool IsSanitized() { return std::getenv("MEDLEY_SANITIZE") != nullptr; }

std::string Agent() { return std::string(std::getenv("MEDLEY_BIN_DIR")) + "/medley-agent"; }

// Seconds of processor time of the process's threads, without its children. Not from /proc/PID/stat, which counts in
// hundredths of a second: the bar is three of them.
double ProcessorSeconds(pid_t pid) {
  double nanoseconds = 0;
  std::error_code error;
  std::filesystem::directory_iterator thread("/proc/" + std::to_string(pid) + "/task", error), end;
  for (; !error && thread != end; thread.increment(error)) {
    nanoseconds += std::atof(base::ReadFile(thread->path() / "schedstat").value_or("").c_str());
  }
  return nanoseconds / 1e9;
}

// MiB of a row of /proc/PID/smaps_rollup.
double Mebibytes(pid_t pid, const std::string& row) {
  std::istringstream text(base::ReadFile("/proc/" + std::to_string(pid) + "/smaps_rollup").value_or(""));
  std::string line;
  while (std::getline(text, line)) {
    if (line.starts_with(row + ":")) return std::atof(line.c_str() + row.size() + 1) / 1024;
  }
  return 0;
}

TEST(AgentCostTest, AnAgentTakesLittleOfItsUnit) {
  const int seconds = base::Rounds(6, 30);
  const std::string loop = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); sleep 0.1; echo \"step $i loss 0.5\"; done";
  JobOptions options;
  options.spec_json = nlohmann::json({{"program",
                                       {{"command", {"sh", "-c", loop}},
                                        {"samplesPerStep", 8},
                                        {"steps", 100000},
                                        {"progress", {{"log", R"(step (?P<step>\d+) loss (?P<loss>[\d.]+))"}}}}},
                                      {"checkpoint", {{"interval", "60s"}}}})
                          .dump();
  options.operations = 1;
  options.tables = {};
  pid_t agent = 0;
  options.place = [&agent](const std::string& pool, pid_t pid) {
    if (pool == "cpu") agent = pid;  // the last one: members start after the coordinator
  };
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply({.stages = {{.first = 0, .end = 1, .units = 1, .pool = "cpu"}}, .micro_batches = 1}, "test");
  const auto trained = [](int64_t step) {
    return [step](const job::v1::Observation& seen) { return seen.step() >= step; };
  };
  const auto before = job.WaitFor(trained(10), base::seconds(60));
  const base::SystemClock clock;
  const base::SteadyTime since = clock.Steady();
  const double processor = ProcessorSeconds(agent);
  job.WaitFor(trained(before.step() + static_cast<int64_t>(kStepsPerSecond * seconds)), base::seconds(60));
  const double share = (ProcessorSeconds(agent) - processor) / base::ToSeconds(clock.Steady() - since);
  const double resident = Mebibytes(agent, "Rss");
  std::printf(
      "the agent: %.1f MiB resident (%.1f proportional), %.2f %% of a core at %.1f steps a second, for %.0f s\n",
      resident, Mebibytes(agent, "Pss"), 100 * share,
      static_cast<double>(job.Observe().step() - before.step()) / base::ToSeconds(clock.Steady() - since),
      base::ToSeconds(clock.Steady() - since));
  EXPECT_GT(resident, 1);
  EXPECT_GT(processor, 0);
  if (IsSanitized()) return;  // sanitizers take memory and time of their own
  EXPECT_LE(resident, kMostMebibytes);
  EXPECT_LE(share, kMostOfACore * base::Patience(1));
}

// So it can be copied into any image: neither the dynamic loader nor a library is asked for.
TEST(AgentCostTest, TheAgentNeedsNothingOfAnImage) {
  if (IsSanitized()) return;  // sanitizers are shared libraries
  const auto program = base::ReadFile(Agent());
  ASSERT_THAT(program, base::IsOk());
  Elf64_Ehdr header;
  ASSERT_GE(program->size(), sizeof(header));
  std::memcpy(&header, program->data(), sizeof(header));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    std::memcpy(&part, program->data() + header.e_phoff + static_cast<size_t>(i) * header.e_phentsize, sizeof(part));
    EXPECT_NE(part.p_type, static_cast<uint32_t>(PT_INTERP));
    EXPECT_NE(part.p_type, static_cast<uint32_t>(PT_DYNAMIC));
  }
  std::printf("the agent: %.1f MB\n", static_cast<double>(program->size()) / 1e6);
}

TEST(AgentCostTest, TheAgentInstallsItself) {
  const auto folder = *base::MakeTempDir("agent");
  const std::string copy = (folder / "medley-agent").string();
  for (int i = 0; i < 2; ++i) {  // an init container may run again
    ASSERT_EQ(std::system((Agent() + " --install=" + copy).c_str()), 0);
    EXPECT_EQ(std::system((copy + " --help >/dev/null").c_str()), 0);
  }
  EXPECT_NE(std::system((Agent() + " --install=/proc/none/medley-agent 2>/dev/null").c_str()), 0);
  base::RemoveTempDir(folder);
}

}  // namespace
}  // namespace medley::worker::agent_cost_test
