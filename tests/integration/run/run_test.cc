// Tests `medley run` as a user starts it: the example from end to end, a cluster kept running for kubectl, and bad
// input.
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
namespace {

using testing::HasSubstr;
using testing::Not;

const std::filesystem::path& Source() {
  static const std::filesystem::path kSource(std::getenv("MEDLEY_SOURCE_DIR"));
  return kSource;
}

// A pool and a job that trains for a second or two. The text `from` is replaced by `to`.
std::string SmallJob(const std::string& from = "", const std::string& to = "") {
  std::string text = R"(
apiVersion: medley.dev/v1alpha1
kind: ResourcePool
metadata: {name: local}
spec:
  class: CPU
  unit: {resources: {cpu: 400m, memory: 512Mi}}
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

void Edit(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

bool Sanitized() {
  const char* sanitizers = std::getenv("MEDLEY_SANITIZE");
  return sanitizers != nullptr && *sanitizers != '\0';
}

class RunTest : public testing::Test {
 protected:
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
};

// In every build, so that a change of the example is noticed before the sanitizers run.
TEST_F(RunTest, TheExampleForSanitizersFollowsTheExample) { ExampleForSanitizers(); }

TEST_F(RunTest, TheExampleIsPlannedTrainedRescaledRecoveredAndFinished) {
  const bool sanitized = Sanitized();
  const auto manifest = sanitized ? ExampleForSanitizers() : Source() / "examples/adult.yaml";
  EXPECT_EQ(RunExample(manifest), "exit code 0") << Output();
  const std::string output = Output();
  EXPECT_THAT(output,
              HasSubstr("simulated, because the file asks for it (run.medley.dev/simulate): old-spot, new-spot, "
                        "new-reserved."));
  EXPECT_THAT(output, HasSubstr("plan of generation 1 from planner exact"));
  EXPECT_THAT(output, HasSubstr("for comparison, on a single pool"));
  EXPECT_THAT(output, HasSubstr("ReplanConsidered: PriceChanged: move"));
  EXPECT_THAT(output, HasSubstr("SIGKILL to adult-"));
  EXPECT_THAT(output, HasSubstr(sanitized ? "samples trained         260,488 of 260,488"
                                          : "samples trained         455,854 of 455,854"));
}

// A job for the fewest seconds of a step on pools of unlike units.
std::string FastestJob(const std::string& planner, const std::string& training) {
  std::string job =
      SmallJob("objective: {maxUsdPerHour: \"2\"}", "objective: {fastest: true}\n  planner: {name: " + planner + "}");
  Edit(job, "model: {name: logistic}", "model: {name: mlp, parameters: {hidden: [512, 512]}}");
  Edit(job, "categorical: [1, 3, 5, 6, 7, 8, 9, 13], ", "");
  Edit(job, "batchSize: 512, microBatches: 1", training);
  Edit(job, "  limit: 4\n", "  limit: 1\n");
  Edit(job, "---\n", R"(---
apiVersion: medley.dev/v1alpha1
kind: ResourcePool
metadata: {name: slow}
spec:
  class: CPU
  unit: {resources: {cpu: 200m, memory: 512Mi}}
  limit: 2
  price: {usdPerUnitHour: "0.05"}
---
)");
  return job;
}

// The goal step time on the pools of a job: one placement of the whole model on units of both pools, whose replicas
// differ. Half of the samples of a step go to the unit that is twice as fast as the others.
TEST_F(RunTest, TheFastestPlanTrainsOnUnlikePools) {
  EXPECT_EQ(
      RunManifest(FastestJob("hierarchy", "batchSize: 512, microBatches: 1, sync: {mode: Percentage, fraction: 0.1}")),
      "exit code 0")
      << Output();
  EXPECT_THAT(Output(), HasSubstr("plan of generation 1 from planner hierarchy"));
  EXPECT_THAT(Output(), HasSubstr("samples trained         32,561 of 32,561"));
}

// Each operation has devices of its own.
TEST_F(RunTest, APlanOfSingleOperationsTrains) {
  EXPECT_EQ(RunManifest(FastestJob("graph", "batchSize: 512, microBatches: 1")), "exit code 0") << Output();
  EXPECT_THAT(Output(), HasSubstr("plan of generation 1 from planner graph"));
  EXPECT_THAT(Output(), HasSubstr("samples trained         32,561 of 32,561"));
}

TEST_F(RunTest, KeepsTheClusterUpForAStockKubectl) {
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "job.yaml", SmallJob()), base::IsOk());
  const auto child = Start({"run", (folder_ / "job.yaml").string(), "--plain", "--keep", "--folder",
                            (folder_ / "run").string(), "--export", (folder_ / "model").string()});
  ASSERT_TRUE(WaitForOutput("export KUBECONFIG=", base::seconds(120))) << Output();
  for (const char* what :
       {"web page of the job        http://127.0.0.1:", "API server  ", "scheduling service, REST   http://127.0.0.1:",
        "scheduling service, gRPC   127.0.0.1:", "operator                   http://127.0.0.1:"}) {
    EXPECT_THAT(Output(), HasSubstr(what));
  }
  EXPECT_THAT(Kubectl("get mtj,mrp,pods"),
              testing::AllOf(HasSubstr("trainingjob.medley.dev/small"), HasSubstr("resourcepool.medley.dev/local"),
                             HasSubstr("pod/small-coordinator")));
  EXPECT_EQ(Kubectl("get nodes -o jsonpath={.items[*].status.capacity.cpu}"), std::to_string(kube::ThisMachine().cpus));
  EXPECT_THAT(Kubectl("get mtj small"), testing::AllOf(HasSubstr("STATUS"), HasSubstr("Complete")));
  EXPECT_THAT(Kubectl("describe mtj small"), HasSubstr("PlanAccepted"));
  EXPECT_THAT(Kubectl("logs small-coordinator"), HasSubstr("generation"));
  EXPECT_THAT(Kubectl("scale mtj small --replicas=3"), HasSubstr("scaled"));
  EXPECT_THAT(Kubectl("get mtj small -o jsonpath={.spec.elasticity.maxUnits}"), HasSubstr("3"));
  // The model as from a cluster: through a pod that mounts the volume.
  const std::string fetched = (folder_ / "fetched").string();
  EXPECT_THAT(Medley("download small " + fetched), HasSubstr("the model is in " + fetched));
  for (const char* name : {"model.json", "schema.json", "model.safetensors", "README.md"}) {
    const auto expected = base::ReadFile(folder_ / "model" / name);
    EXPECT_THAT(expected, base::IsOk()) << name;
    EXPECT_EQ(base::ReadFile(folder_ / "fetched" / name).value_or(""), expected.value_or("-")) << name;
  }
  EXPECT_THAT(Kubectl("get pods"), Not(HasSubstr("download")));
  // Deleting a pool in use is a warning. No job uses this one any more, so its status is written by hand.
  Kubectl("patch mrp local --subresource=status --type=merge -p '{\"status\": {\"units\": {\"used\": 3}}}'");
  EXPECT_THAT(Kubectl("delete mrp local"), HasSubstr("Warning: units of ResourcePool local that jobs hold: 3"));
  const std::string edited = SmallJob("maxUsdPerHour: \"2\"", "maxUsdPerHour: \"3\"");
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "edited.yaml", edited), base::IsOk());
  EXPECT_THAT(Kubectl("apply -f " + (folder_ / "edited.yaml").string()), HasSubstr("trainingjob.medley.dev/small"));
  EXPECT_THAT(Kubectl("get mtj small -o jsonpath={.spec.objective.maxUsdPerHour}"), HasSubstr("3"));
  ASSERT_EQ(kill(child->pid(), SIGINT), 0);
  EXPECT_EQ(WaitForEnd(*child, base::seconds(60)), "exit code 0");
}

// Its quota is far above what it computes in a step, and a probe that computed without pauses would use it up.
TEST_F(RunTest, ATrainerThatAnAnnotationMakesSlowIsLeftOutAndReturns) {
  std::string job = SmallJob("model: {name: logistic}", "model: {name: mlp, parameters: {hidden: [512, 256]}}");
  Edit(job, "categorical: [1, 3, 5, 6, 7, 8, 9, 13], ", "");
  Edit(job, "cpu: 400m", "cpu: 200m");
  Edit(job, "epochs: 1, batchSize: 512, microBatches: 1",
       "epochs: 2000, batchSize: 512, microBatches: 1, sync: {anomaly: {detector: RunningMean}}");
  Edit(job, "  runPolicy:", "  elasticity: {minUnits: 3, maxUnits: 3}\n  runPolicy:");
  const auto child = StartManifest(job, {});
  // Of its samples, so what is usual is known.
  ASSERT_TRUE(WaitForOutput("\n   1 %  ", base::seconds(240))) << Output();
  const auto has_event = [&](const std::string& reason) {
    const base::SteadyTime deadline = clock_.Steady() + base::Patience(base::seconds(120));
    while (clock_.Steady() < deadline && !child->Ended()) {
      if (Kubectl("get events").find(reason) != std::string::npos) return true;
      clock_.SleepFor(base::milliseconds(500), std::stop_token());
    }
    return false;
  };
  Kubectl("annotate pod small-0-local-2 run.medley.dev/cpu=20m");
  EXPECT_TRUE(has_event("TrainerLeftOut")) << Output();
  Kubectl("annotate pod small-0-local-2 run.medley.dev/cpu-");
  EXPECT_TRUE(has_event("TrainerReturned")) << Kubectl("get mtj small -o yaml");
  child->Stop(base::seconds(20));
}

// On one machine, whose addresses their pods share.
TEST_F(RunTest, TwoRunsOfOneManifestDoNotDisturbEachOther) {
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "job.yaml", SmallJob()), base::IsOk());
  std::vector<std::unique_ptr<ChildProcess>> runs;
  const auto log = [&](int run) { return folder_ / fmt::format("out-{}", run); };
  for (const int run : {0, 1}) {
    auto child = ChildProcess::Start({.program = std::filesystem::path(std::getenv("MEDLEY_BIN_DIR")) / "medley",
                                      .arguments = {"run", (folder_ / "job.yaml").string(), "--plain", "--folder",
                                                    (folder_ / fmt::format("run-{}", run)).string(), "--export",
                                                    (folder_ / fmt::format("model-{}", run)).string()},
                                      .log = log(run)});
    ASSERT_THAT(child.status(), base::IsOk());
    runs.push_back(*std::move(child));
  }
  for (const int run : {0, 1}) {
    EXPECT_EQ(WaitForEnd(*runs[static_cast<size_t>(run)], base::seconds(120)), "exit code 0");
    const std::string output = base::ReadFile(log(run)).value_or("");
    EXPECT_THAT(output, Not(HasSubstr("Restarting"))) << output;
    EXPECT_TRUE(std::filesystem::exists(folder_ / fmt::format("model-{}", run) / "model.safetensors"));
  }
}

TEST_F(RunTest, RefusesBadManifestsWithASentence) {
  EXPECT_EQ(RunManifest("a: [1"), "exit code 2");
  EXPECT_THAT(Output(), HasSubstr("job.yaml"));
  EXPECT_EQ(RunManifest(SmallJob("epochs: 1", "epochs: 0")), "exit code 2");
  EXPECT_THAT(Output(), HasSubstr("spec.training.epochs"));
  EXPECT_EQ(RunManifest(SmallJob("objective:", "objectives:")), "exit code 2");
  EXPECT_THAT(Output(), HasSubstr("spec.objectives: unknown field; did you mean `objective`?"));
  const auto child = Start({"run", "/nonexistent.yaml"});
  EXPECT_EQ(WaitForEnd(*child, base::seconds(60)), "exit code 2");
  EXPECT_THAT(Output(), HasSubstr("/nonexistent.yaml"));
}

TEST_F(RunTest, AnUnknownPoolIsAConditionThatNamesTheField) {
  const auto child = StartManifest(SmallJob("runPolicy:", "resources: {pools: [moon]}\n  runPolicy:"), {});
  EXPECT_TRUE(WaitForOutput("PoolNotFound", base::seconds(120))) << Output();
  EXPECT_THAT(Output(), HasSubstr("moon"));
  child->Stop(base::seconds(20));
}

// Issue 12: the profile of a GPU pool was measured on the CPU.
TEST_F(RunTest, AGpuPoolIsRefusedAtOnceUnlessItsSimulationIsAskedFor) {
  const std::string gpus = "class: GPU\n  unit: {resources: {nvidia.com/gpu: 1, cpu: 400m, memory: 512Mi}}";
  const std::string cpus = "class: CPU\n  unit: {resources: {cpu: 400m, memory: 512Mi}}";
  std::string job = SmallJob(cpus, gpus);
  EXPECT_EQ(RunManifest(job), "exit code 2");
  EXPECT_THAT(Output(),
              testing::AllOf(HasSubstr("job.yaml: ResourcePool local: no unit can run on this machine: it needs "
                                       "a GPU, and the "),
                             HasSubstr("run.medley.dev/simulate"), testing::Not(HasSubstr("Profiling"))));
  Edit(job, "{name: local}", "{name: local, annotations: {run.medley.dev/simulate: \"true\"}}");
  EXPECT_EQ(RunManifest(job), "exit code 0") << Output();
  EXPECT_THAT(Output(), HasSubstr("simulated, because the file asks for it (run.medley.dev/simulate): local."));
}

// Issue 12: the second run trained nothing and reported the first run's results. The claim of the checkpoints is a
// folder of the run folder, which both share.
TEST_F(RunTest, ASecondRunWithOtherParametersTrainsAgain) {
  const std::string checkpoint =
      "checkpoint: {volume: {persistentVolumeClaim: {claimName: c}, mountPath: /checkpoints}}\n  objective:";
  std::string job = SmallJob("objective:", checkpoint);
  EXPECT_EQ(RunManifest(job), "exit code 0") << Output();
  EXPECT_THAT(Output(), HasSubstr("32,561 of 32,561"));
  Edit(job, "epochs: 1", "epochs: 2");
  EXPECT_EQ(RunManifest(job), "exit code 0") << Output();
  EXPECT_THAT(Output(), HasSubstr("65,122 of 65,122"));
}

// The job has no checkpoint volume.
TEST_F(RunTest, TheModelIsWhereTheLastLineSaysAndPredicts) {
  EXPECT_EQ(RunManifest(SmallJob()), "exit code 0") << Output();
  const std::string model = (folder_ / "model").string();
  const std::string last = "the model is in " + model + " (its README.md says how to use it)\n";
  EXPECT_THAT(Output(), testing::EndsWith(last));
  const std::string data = (Source() / "examples/data/adult.test.csv").string();
  const auto predict = Start({"predict", model, data, "-o", (folder_ / "predictions").string()});
  EXPECT_EQ(WaitForEnd(*predict, base::seconds(60)), "exit code 0") << Output();
  EXPECT_THAT(Output(), HasSubstr("16281 predictions"));
  const std::string predictions = base::ReadFile(folder_ / "predictions").value_or("");
  EXPECT_EQ(std::count(predictions.begin(), predictions.end(), '\n'), 16281);
  const auto evaluate = Start({"evaluate", model, data});
  EXPECT_EQ(WaitForEnd(*evaluate, base::seconds(60)), "exit code 0") << Output();
  EXPECT_THAT(Output(), testing::ContainsRegex("AUC       0[.]8[0-9]"));
}

TEST_F(RunTest, AFolderThatIsNoModelIsNotReplaced) {
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "notes", "mine"), base::IsOk());
  EXPECT_EQ(RunManifest(SmallJob(), {"--export", folder_.string()}), "exit code 2");
  EXPECT_THAT(Output(), HasSubstr("exists and is not a model; name another folder with --export"));
}

TEST_F(RunTest, AnInfeasibleObjectiveNamesTheConstraint) {
  EXPECT_EQ(RunManifest(SmallJob("maxUsdPerHour: \"2\"", "maxUsdPerHour: \"0.01\"")), "exit code 2") << Output();
  EXPECT_THAT(Output(), HasSubstr("medley: the job cannot run: Infeasible: "));
  EXPECT_THAT(Output(), HasSubstr("maxUsdPerHour is 0.01: raise it to"));
}

TEST_F(RunTest, AJobThatDoesNotEndInTimeIsAFailure) {
  EXPECT_EQ(RunManifest(SmallJob("maxUsdPerHour: \"2\"", "maxUsdPerHour: \"0.01\""), {"--timeout", "3"}),
            "exit code 1");
}

TEST_F(RunTest, AnInterruptedRunContinuesWhereItStopped) {
  setenv("MEDLEY_CACHE", (folder_ / "cache").c_str(), 1);
  const auto child = StartManifest(SmallJob("epochs: 1,", "epochs: 100,"), {});
  ASSERT_TRUE(WaitForOutput(" samples/s  loss ", base::seconds(120))) << Output();
  ASSERT_EQ(kill(child->pid(), SIGINT), 0);
  EXPECT_EQ(WaitForEnd(*child, base::seconds(120)), "exit code 130") << Output();
  EXPECT_THAT(Output(), testing::ContainsRegex("stopped at step [0-9]+; the checkpoint is .*step-[0-9]+-e[0-9]+\n"));
  EXPECT_THAT(Output(),
              HasSubstr("continue with: medley run " + (folder_ / "job.yaml").string() + " --resume --folder " +
                        (folder_ / "run").string() + " --export " + (folder_ / "model").string() + " --plain\n"));
  // Another batch size would train another model.
  EXPECT_EQ(RunManifest(SmallJob("epochs: 1, batchSize: 512", "epochs: 100, batchSize: 256"), {"--resume"}),
            "exit code 2");
  EXPECT_THAT(Output(), HasSubstr("spec.training.batchSize is 512 in the run and 256 in the file"));
  // A time limit stops it in the same way.
  EXPECT_EQ(RunManifest(SmallJob("epochs: 1,", "epochs: 100,"), {"--resume", "--timeout", "1"}), "exit code 124");
  EXPECT_THAT(Output(), testing::AllOf(HasSubstr("(--timeout); it is "), HasSubstr("saving a checkpoint")));
  // The goal may change. What was measured is not measured again.
  std::filesystem::remove(folder_ / "out");
  std::string job = SmallJob("epochs: 1,", "epochs: 100,");
  Edit(job, "maxUsdPerHour: \"2\"", "maxUsdPerHour: \"3\"");
  EXPECT_EQ(RunManifest(job, {"--resume"}), "exit code 0") << Output();
  EXPECT_THAT(Output(), testing::AllOf(HasSubstr("continuing from step "), Not(HasSubstr("Profiling: ")),
                                       HasSubstr("pool local: its profile was measured at ")));
  EXPECT_THAT(Output(), HasSubstr("samples trained         3,256,100 of 3,256,100"));  // each row 100 times
  EXPECT_THAT(Output(), Not(testing::ContainsRegex(", [1-9][0-9]* steps trained again")));
  EXPECT_EQ(RunManifest(job, {"--resume"}), "exit code 2");
  EXPECT_THAT(Output(), HasSubstr("is complete; there is nothing to continue"));
  setenv("MEDLEY_CACHE", "off", 1);
}

TEST_F(RunTest, AKilledRunContinuesFromItsLastCheckpointAndLeavesNoProcess) {
  std::string job = SmallJob("objective:", "checkpoint: {interval: 1s}\n  objective:");
  Edit(job, "epochs: 1,", "epochs: 3000,");
  const auto child = StartManifest(job, {});
  ASSERT_TRUE(WaitForOutput(" samples/s  loss ", base::seconds(120))) << Output();
  ASSERT_TRUE(HasCheckpoint()) << Output();
  // A second run in the folder would write into the first one's.
  const auto second = ChildProcess::Start(
      {.program = std::filesystem::path(std::getenv("MEDLEY_BIN_DIR")) / "medley",
       .arguments = {"run", (folder_ / "job.yaml").string(), "--resume", "--folder", (folder_ / "run").string()},
       .log = folder_ / "second"});
  ASSERT_THAT(second.status(), base::IsOk());
  EXPECT_EQ(WaitForEnd(**second, base::seconds(60)), "exit code 2");
  EXPECT_THAT(base::ReadFile(folder_ / "second").value_or(""),
              HasSubstr(fmt::format("another medley run (process {}) uses the folder ", child->pid())));
  kill(child->pid(), SIGKILL);
  EXPECT_EQ(WaitForEnd(*child, base::seconds(60)), "signal 9");
  EXPECT_TRUE(NoProcessIsLeft());
  std::filesystem::remove(folder_ / "out");
  const auto resumed = StartManifest(job, {"--resume"});
  ASSERT_TRUE(WaitForOutput(" samples/s  loss ", base::seconds(120))) << Output();
  EXPECT_THAT(Output(), HasSubstr("continuing from step "));
  // The second signal does not wait for a checkpoint.
  kill(resumed->pid(), SIGTERM);
  ASSERT_TRUE(WaitForOutput("saving a checkpoint", base::seconds(60))) << Output();
  kill(resumed->pid(), SIGINT);
  EXPECT_EQ(WaitForEnd(*resumed, base::seconds(60)), "exit code 130");
  EXPECT_TRUE(NoProcessIsLeft());
}

TEST_F(RunTest, NothingToContinueIsASentence) {
  EXPECT_EQ(RunManifest(SmallJob(), {"--resume"}), "exit code 2");
  EXPECT_THAT(Output(), HasSubstr("nothing to continue: the folder " + (folder_ / "run").string() + " does not exist"));
}

TEST_F(RunTest, MissingDataFailsTheJobWithTheFile) {
  EXPECT_EQ(RunManifest(SmallJob("adult.train.csv", "absent.csv"), {"--timeout", "110"}), "exit code 1");
  EXPECT_THAT(Output(), HasSubstr("absent.csv"));
  // Issue 45: the cause was printed five times, and last in each sentence.
  EXPECT_THAT(Output(), testing::ContainsRegex("\nmedley: [^\n]{0,40}absent[.]csv[^\n]*\n  [^\n]*pod [^\n]*\n"));
  EXPECT_THAT(Output(), testing::ContainsRegex("\n  log: [^\n]*/logs/worker/0[.]log\n"));
  size_t times = 0;
  for (size_t at = Output().find("absent.csv"); at != std::string::npos; at = Output().find("absent.csv", at + 1))
    ++times;
  EXPECT_LE(times, 2u) << "once when it is seen, unless the end follows within a second, and once at the end\n"
                       << Output();
}

// Issue 12: the job ended Complete with a log loss of 0.
TEST_F(RunTest, APositiveLabelThatNeverOccursFailsTheJobWithTheValuesSeen) {
  EXPECT_EQ(RunManifest(SmallJob("positive: \">50K\"", "positive: \">50k\""), {"--timeout", "60"}), "exit code 1");
  EXPECT_THAT(Output(), testing::AllOf(HasSubstr("Failed"), HasSubstr("adult.train.csv"), HasSubstr("never \">50k\""),
                                       HasSubstr("\"<=50K\" (24720 rows)"), HasSubstr("did you mean `>50K`?")));
}

TEST_F(RunTest, APortInUseIsNamed) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  EXPECT_EQ(RunManifest(SmallJob(), {"--port", port}), "exit code 1");
  EXPECT_THAT(Output(), testing::AllOf(HasSubstr(port), HasSubstr("in use")));
  close(fd);
}

}  // namespace
}  // namespace medley::cli
