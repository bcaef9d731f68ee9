// What the tests of `medley run` share: small jobs, and a folder in which the program runs.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "cli/run/child_process.h"
#include "common/base/file.h"
#include "common/base/testing/patience.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "localcluster/node/machine.h"

namespace medley::cli {

inline const std::filesystem::path& Source() {
  static const std::filesystem::path kSource(std::getenv("MEDLEY_SOURCE_DIR"));
  return kSource;
}

// A pool and a job that is measured for a second and trains for one or two. The text `from` is replaced by `to`.
inline std::string SmallJob(const std::string& from = "", const std::string& to = "") {
  std::string text = R"(
apiVersion: medley.dev/v1alpha1
kind: ResourcePool
metadata: {name: local}
spec:
  class: CPU
  unit: {resources: {cpu: 400m, memory: 512Mi}, env: [{name: MEDLEY_PROFILE_TIME, value: 1s}]}
  limit: 4
  price: {usdPerUnitHour: "0.10"}
---
apiVersion: medley.dev/v1alpha1
kind: TrainingJob
metadata: {name: small}
spec:
  model: {name: logistic}
  data:
    train: {uri: file:///data/adult.train.csv, format: csv}
    test: {uri: file:///data/adult.test.csv, format: csv}
    schema: {label: {column: 14, positive: ">50K"}, categorical: [1, 3, 5, 6, 7, 8, 9, 13], numeric: [0, 2, 4, 10, 11, 12]}
    volume: {hostPath: {path: DATA}, mountPath: /data}
  training: {epochs: 1, batchSize: 512, microBatches: 1}
  objective: {maxUsdPerHour: "2"}
  runPolicy: {cleanPodPolicy: None}
)";
  const std::string data = (Source() / "examples/data").string();
  text.replace(text.find("DATA"), 4, data);
  if (!from.empty()) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
  return text;
}

inline void Edit(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

inline bool Sanitized() {
  const char* sanitizers = std::getenv("MEDLEY_SANITIZE");
  return sanitizers != nullptr && *sanitizers != '\0';
}

// The runs of a process share the profiles that they measure, as runs of one user do: a job like an earlier one begins
// to train at once.
class RunTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    profiles_ = *base::MakeTempDir("medley-run-profiles");
    setenv("MEDLEY_CACHE", profiles_.c_str(), 1);
  }
  static void TearDownTestSuite() { base::RemoveTempDir(profiles_); }
  void SetUp() override { folder_ = *base::MakeTempDir("medley-run-test"); }
  void TearDown() override { base::RemoveTempDir(folder_); }

  std::unique_ptr<ChildProcess> Start(std::vector<std::string> arguments, const std::string& name = "medley") {
    const std::filesystem::path bin(std::getenv("MEDLEY_BIN_DIR"));
    auto child =
        ChildProcess::Start({.program = bin / name, .arguments = std::move(arguments), .log = folder_ / "out"});
    EXPECT_THAT(child.status(), base::IsOk());
    return *std::move(child);
  }
  std::string Output() const { return base::ReadFile(folder_ / "out").value_or(""); }
  // Returns how the program ended, or "" when it still runs after `limit`.
  std::string WaitForEnd(ChildProcess& child, base::nanoseconds limit) {
    const base::SteadyTime deadline = clock_.Steady() + base::Patience(limit);
    while (clock_.Steady() < deadline) {
      if (const auto ended = child.Ended()) return *ended;
      clock_.SleepFor(base::milliseconds(50), std::stop_token());
    }
    return "";
  }
  bool WaitForOutput(std::string_view text, base::nanoseconds limit) {
    const base::SteadyTime deadline = clock_.Steady() + base::Patience(limit);
    while (clock_.Steady() < deadline) {
      if (Output().find(text) != std::string::npos) return true;
      clock_.SleepFor(base::milliseconds(50), std::stop_token());
    }
    return false;
  }
  // Sends it to the processes of this run that have this program.
  void Signal(const std::string& program, int signal) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string text = base::ReadFile(entry.path() / "cmdline").value_or("");
      if (text.find((folder_ / "run").string()) == std::string::npos || text.find(program) == std::string::npos)
        continue;
      if (text.substr(0, text.find('\0')).ends_with(program)) kill(std::stoi(entry.path().filename().string()), signal);
    }
  }
  // Waits until no process has the run folder in its environment or command line: no pod, no program of the cluster.
  bool NoProcessIsLeft() {
    const base::SteadyTime deadline = clock_.Steady() + base::Patience(base::seconds(60));
    while (clock_.Steady() < deadline) {
      bool found = false;
      for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        for (const char* file : {"cmdline", "environ"}) {
          const std::string text = base::ReadFile(entry.path() / file).value_or("");
          found = found || text.find((folder_ / "run").string()) != std::string::npos;
        }
      }
      if (!found) return true;
      clock_.SleepFor(base::milliseconds(50), std::stop_token());
    }
    return false;
  }
  // Waits until the run has completed a checkpoint.
  bool HasCheckpoint() {
    const std::filesystem::path claims = folder_ / "run/node/claims";
    const base::SteadyTime deadline = clock_.Steady() + base::Patience(base::seconds(120));
    while (clock_.Steady() < deadline) {
      std::error_code error;
      for (auto at = std::filesystem::recursive_directory_iterator(claims, error);
           !error && at != std::filesystem::end(at); at.increment(error)) {
        if (at->path().filename() == "manifest.json") return true;
      }
      clock_.SleepFor(base::milliseconds(50), std::stop_token());
    }
    return false;
  }
  // Starts `medley run` on the manifest.
  std::unique_ptr<ChildProcess> StartManifest(const std::string& manifest, const std::vector<std::string>& more) {
    EXPECT_THAT(base::WriteFileAtomic(folder_ / "job.yaml", manifest), base::IsOk());
    const bool named = std::find(more.begin(), more.end(), "--export") != more.end();
    std::vector<std::string> arguments = {"run", (folder_ / "job.yaml").string(), "--plain", "--folder",
                                          (folder_ / "run").string()};
    if (!named) arguments.insert(arguments.end(), {"--export", (folder_ / "model").string()});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Start(std::move(arguments));
  }
  // Runs `medley run` on the manifest and returns how it ended.
  std::string RunManifest(const std::string& manifest, const std::vector<std::string>& more = {}) {
    const auto child = StartManifest(manifest, more);
    return WaitForEnd(*child, base::seconds(120));
  }
  // Copies all files of the example but the job into the folder, and returns the job.
  std::string CopyExample() {
    const std::filesystem::path from = Source() / "examples";
    for (const char* name : {"adult.prices.yaml", "adult.prices-after.yaml", "adult.scenario.yaml"}) {
      std::filesystem::copy_file(from / name, folder_ / name, std::filesystem::copy_options::overwrite_existing);
    }
    std::string job = base::ReadFile(from / "adult.yaml").value_or("");
    Edit(job, "path: ./data", "path: " + (from / "data").string());
    return job;
  }
  // The throughput to which the planner says that the goal must be lowered; 0: it has not said so.
  int64_t ReachableThroughput() const {
    const std::string output = Output();
    const std::string words = "reaches at most ";  // of the first plan or of the one after the price change
    const size_t at = output.find(words);
    return at == std::string::npos ? 0 : std::atoll(output.c_str() + at + words.size());
  }
  // The copied example keeps the goal of its job.
  std::string WithoutGoalPercent() {
    std::string scenario = base::ReadFile(folder_ / "adult.scenario.yaml").value_or("");
    Edit(scenario, "\ngoalPercent: ", "\n# goalPercent: ");
    Edit(scenario, "\nmixSavesPercent: ", "\n# mixSavesPercent: ");  // which needs goalPercent
    EXPECT_THAT(base::WriteFileAtomic(folder_ / "adult.scenario.yaml", scenario), base::IsOk());
    return scenario;
  }
  // Runs the example and returns how it ended. An idle machine must reach the goal, a part of what its profiles say. On
  // a machine that has other work to do the planner says what it can reach, and the example runs with half of that.
  std::string RunExample(std::filesystem::path manifest) {
    double load = 0;  // before the example: processes that want to run, the mean of a minute
    EXPECT_EQ(getloadavg(&load, 1), 1);
    for (int attempt = 1;; ++attempt) {
      std::filesystem::remove(folder_ / "out");  // of the attempt before
      const auto child = Start({"run", manifest.string(), "--plain", "--export", (folder_ / "model").string(),
                                "--timeout", std::to_string(base::Patience(base::seconds(300)).count())});
      const base::SteadyTime deadline = clock_.Steady() + base::Patience(base::seconds(400));
      while (clock_.Steady() < deadline && ReachableThroughput() == 0) {
        if (const auto ended = child->Ended()) {
          const bool goal_follows = Output().find("the machines reach at most ") != std::string::npos;
          EXPECT_EQ(goal_follows, attempt == 1 && !Sanitized()) << Output();
          return *ended;
        }
        clock_.SleepFor(base::milliseconds(50), std::stop_token());
      }
      const int64_t reachable = ReachableThroughput();
      if (reachable == 0 || attempt == 3) return "not within its time, or without a plan three times";
      if (load <= std::thread::hardware_concurrency()) {
        return "without a plan, on a machine whose load was only " + std::to_string(load);
      }
      child->Stop(base::seconds(20));
      std::string job = CopyExample();
      Edit(job, "minThroughput: 11000", "minThroughput: " + std::to_string(reachable / 2));
      WithoutGoalPercent();
      manifest = folder_ / "adult.yaml";
      EXPECT_THAT(base::WriteFileAtomic(manifest, job), base::IsOk());
      std::printf("A BUSY MACHINE, load %.1f: it reaches %lld samples/s, so the example runs with minThroughput %lld\n",
                  load, static_cast<long long>(reachable), static_cast<long long>(reachable / 2));
    }
  }
  // The example for builds with sanitizers. The best plan depends on measured layer times, and the goals in samples/s
  // on the machine's speed. A sanitizer slows only our code, not the libraries, so neither is valid here. Instead, the
  // job may use only the two offers of the same machine, and any throughput is enough. One price changes from a third
  // of the other to more than twice the other, so the best plan moves from one offer to the other with every profile.
  // There are fewer data epochs and matching bounds on the test metrics; everything else is as in the example.
  std::filesystem::path ExampleForSanitizers() {
    std::string job = CopyExample();
    Edit(job, "pools: [old-spot, new-spot, new-reserved], serverPool: old-spot",
         "pools: [new-spot, new-reserved], serverPool: new-reserved");
    for (const char* limit : {"limit: 1", "limit: 1", "limit: 2"}) Edit(job, limit, "limit: 3");
    Edit(job, "{minThroughput: 11000, maxUsdPerHour: \"5\"}", "{minThroughput: 1, maxUsdPerHour: \"50\"}");
    Edit(job, "epochs: 14", "epochs: 8");
    std::string scenario = WithoutGoalPercent();
    Edit(scenario, "{role: trainer, stage: 0}", "{role: trainer}");
    Edit(scenario, "auc: 0.915, logLoss: 0.30", "auc: 0.90, logLoss: 0.34");
    EXPECT_THAT(base::WriteFileAtomic(folder_ / "adult.yaml", job), base::IsOk());
    EXPECT_THAT(base::WriteFileAtomic(folder_ / "adult.scenario.yaml", scenario), base::IsOk());
    std::printf(
        "A SANITIZED BUILD: the example with 8 data epochs instead of 14, without pool old-spot, "
        "with minThroughput 1 and the bounds auc >= 0.90, log loss <= 0.34\n");
    return folder_ / "adult.yaml";
  }
  // Returns the output of an unmodified kubectl; its exit status must be 0.
  std::string Kubectl(const std::string& arguments) { return InCluster("kubectl " + arguments); }
  std::string Medley(const std::string& arguments) {
    return InCluster((std::filesystem::path(std::getenv("MEDLEY_BIN_DIR")) / "medley").string() + " " + arguments);
  }
  std::string InCluster(const std::string& line) {
    const std::string command = "KUBECONFIG=" + (folder_ / "run/kubeconfig").string() + " " + line + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return "";
    std::string text;
    char buffer[4096];
    while (const size_t n = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
    EXPECT_EQ(pclose(pipe), 0) << command << "\n" << text;
    return text;
  }

  base::SystemClock clock_;
  std::filesystem::path folder_;
  static inline std::filesystem::path profiles_;
};

}  // namespace medley::cli
