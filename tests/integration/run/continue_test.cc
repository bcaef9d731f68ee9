// Tests how a run of `medley run` is stopped and continued, begins with the weights of another model, and is repeated
// with other settings by `medley sweep`.
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
  setenv("MEDLEY_CACHE", profiles_.c_str(), 1);
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

// With a rate of almost zero the model stays what it was, so its quality is that of the first job.
TEST_F(RunTest, FineTuningBeginsWithTheWeightsOfAModel) {
  const std::string model = (folder_ / "first").string();
  EXPECT_EQ(RunManifest(SmallJob(), {"--export", model}), "exit code 0") << Output();
  const std::string output = Output();
  const size_t first = output.find("test accuracy"), end = output.find("exported model", first);
  ASSERT_NE(end, std::string::npos) << output;
  const std::string quality = output.substr(first, end - first);
  std::filesystem::remove(folder_ / "out");
  std::string job = SmallJob("model: {name: logistic}", "model: {name: logistic, initialFrom: ./first}");
  Edit(job, "batchSize: 512,", "batchSize: 256, optimizer: {name: sgd, learningRate: 1.0e-12},");
  EXPECT_EQ(RunManifest(job), "exit code 0") << Output();
  EXPECT_THAT(Output(), HasSubstr(quality));
  Edit(job, "initialFrom: ./first", "initialFrom: ./first, parameters: {embeddingRows: 1024}");
  EXPECT_EQ(RunManifest(job), "exit code 1");
  EXPECT_THAT(Output(), HasSubstr("spec.model.parameters.embeddingRows is 65536 in the export and 1024 in this job"));
}

TEST_F(RunTest, ASweepComparesTrialsAndAFailedOneDoesNotEndIt) {
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "job.yaml", SmallJob()), base::IsOk());
  const auto sweep = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"sweep", (folder_ / "job.yaml").string(), "--export",
                                          (folder_ / "best").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto child = Start(std::move(arguments));
    return WaitForEnd(*child, base::seconds(240));
  };
  EXPECT_EQ(sweep({"--set", "data.schema.label.positive=>50K,nobody", "-o", "json"}), "exit code 0") << Output();
  EXPECT_THAT(Output(), testing::AllOf(HasSubstr("\"best\": \"small-1\""), HasSubstr("\"status\": \"failed\""),
                                       HasSubstr("never \\\"nobody\\\""), HasSubstr("\"metric\": \"auc\"")));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "best/model.safetensors"));
  EXPECT_EQ(sweep({"--set", "training.optimiser.name=sgd"}), "exit code 2");
  EXPECT_THAT(Output(), HasSubstr("spec.training.optimiser: unknown field; did you mean `optimizer`?"));
}

TEST_F(RunTest, AnInterruptedSweepPrintsWhatIsComplete) {
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "job.yaml", SmallJob()), base::IsOk());
  const auto child = Start({"sweep", (folder_ / "job.yaml").string(), "--at-once", "1", "--set",
                            "training.epochs=1,100000", "--export", (folder_ / "best").string()});
  ASSERT_TRUE(WaitForOutput("small-2 begins", base::seconds(180))) << Output();
  kill(child->pid(), SIGINT);
  EXPECT_EQ(WaitForEnd(*child, base::seconds(60)), "exit code 130") << Output();
  EXPECT_THAT(Output(),
              testing::AllOf(HasSubstr("best: small-1"), HasSubstr("  stopped\n"), HasSubstr("  complete\n")));
}

TEST_F(RunTest, NothingToContinueIsASentence) {
  EXPECT_EQ(RunManifest(SmallJob(), {"--resume"}), "exit code 2");
  EXPECT_THAT(Output(), HasSubstr("nothing to continue: the folder " + (folder_ / "run").string() + " does not exist"));
}

}  // namespace
}  // namespace medley::cli
