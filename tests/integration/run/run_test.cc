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
#include "tests/integration/run/run_fixture.h"

namespace medley::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

// In every build, so that a change of the example is noticed before the sanitizers run.
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

// One unit computes, keeps the rows of the embedding table and has no servers beside it.
TEST_F(RunTest, AJobWithATableTrainsOnOneUnit) {
  std::string job = SmallJob("model: {name: logistic}",
                             "model: {name: ctrdnn, parameters: {hidden: [16], embeddingDim: 8, embeddingRows: 4096}}");
  Edit(job, "limit: 4", "limit: 1");
  EXPECT_EQ(RunManifest(job), "exit code 0") << Output();
  EXPECT_THAT(Output(), HasSubstr("(in the trainers)"));
  EXPECT_THAT(Output(), HasSubstr("samples trained         32,561 of 32,561"));
  EXPECT_THAT(Output(), Not(HasSubstr("\n  servers")));
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
  unit: {resources: {cpu: 200m, memory: 512Mi}, env: [{name: MEDLEY_PROFILE_TIME, value: 1s}]}
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
  EXPECT_EQ(Kubectl("get nodes -o jsonpath={.items[*].status.capacity.cpu}"),
            std::to_string(localcluster::ThisMachine().cpus));
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
  // Deleting a pool in use is a warning. No job uses this one any more, so its status is written by hand, while the
  // operator, which would correct it, stands still.
  Signal("medley-operator", SIGSTOP);
  Kubectl("patch mrp local --subresource=status --type=merge -p '{\"status\": {\"units\": {\"used\": 3}}}'");
  EXPECT_THAT(Kubectl("delete mrp local"), HasSubstr("Warning: units of ResourcePool local that jobs hold: 3"));
  Signal("medley-operator", SIGCONT);
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
       "epochs: 500, batchSize: 512, microBatches: 1, sync: {anomaly: {detector: RunningMean}}");
  Edit(job, "  runPolicy:", "  elasticity: {minUnits: 3, maxUnits: 3}\n  runPolicy:");
  const auto child = StartManifest(job, {});
  // After 160 steps or more, so what is usual is known.
  ASSERT_TRUE(WaitForOutput("\n   1 %  ", base::seconds(240))) << Output();
  Kubectl("annotate pod small-0-local-2 run.medley.dev/cpu=20m");
  EXPECT_TRUE(WaitForOutput("TrainerLeftOut: ", base::seconds(120))) << Output();
  Kubectl("annotate pod small-0-local-2 run.medley.dev/cpu-");
  EXPECT_TRUE(WaitForOutput("TrainerReturned: ", base::seconds(120))) << Kubectl("get mtj small -o yaml");
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
  const std::string gpus = "class: GPU\n  unit: {resources: {nvidia.com/gpu: 1, cpu: 400m, memory: 512Mi}";
  const std::string cpus = "class: CPU\n  unit: {resources: {cpu: 400m, memory: 512Mi}";
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

TEST_F(RunTest, AFolderThatIsNotAModelIsNotReplaced) {
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
  setenv("MEDLEY_CACHE", "off", 1);  // it is still measured then
  EXPECT_EQ(RunManifest(SmallJob("value: 1s", "value: 60s"), {"--timeout", "3"}), "exit code 1");
  setenv("MEDLEY_CACHE", profiles_.c_str(), 1);
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
