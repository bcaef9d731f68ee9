// The jobs of examples/ whose models come from PyTorch, trained by real processes: images, named inputs, dropout, batch
// norm and clipped gradients. One epoch, of MNIST's test images where the data are MNIST.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/base/file.h"
#include "common/document/parse.h"
#include "tests/integration/worker/job_harness.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;
using Json = nlohmann::json;

// Paths of the pods as those of this machine.
void Map(Json& json, const std::string& examples) {
  if (json.is_structured()) {
    for (Json& child : json) Map(child, examples);
  } else if (json.is_string() && json.get_ref<const std::string&>().starts_with("file:///data/")) {
    json = "file://" + examples + json.get<std::string>().substr(std::string("file:///data").size());
  }
}

JobOptions Example(const std::string& name, int operations) {
  const std::string examples = ExampleData("").parent_path().parent_path().string();
  const auto text = base::ReadFile(examples + "/" + name + "/" + name + ".yaml");
  EXPECT_TRUE(text.ok()) << text.status();
  Json spec = document::ParseYamlStream(*text)->back().at("spec");
  if (spec["data"]["train"]["format"] == "idx") spec["data"]["train"] = spec["data"]["test"];
  Map(spec, examples);
  spec["data"].erase("volume");
  spec["checkpoint"] = {{"interval", "3600s"}, {"keep", 3}};
  spec["training"]["epochs"] = 1;
  // Pooling and ReLU choose between numbers that are nearly equal, and a large rate makes the last digits matter: at
  // any rate, losses of the first 20 steps agree to 1e-7.
  if (name == "lenet") spec["training"]["optimizer"] = {{"name", "sgd"}, {"learningRate", 0.005}};
  if (name == "transformer") spec["training"]["optimizer"]["learningRate"] = 0.001;
  JobOptions options;
  options.spec_json = spec.dump();
  options.operations = operations;
  options.tables = {};
  return options;
}

struct Outcome {
  std::vector<double> losses;
  pb::Observation end;
};

Outcome Train(const JobOptions& options, const JobShape& shape) {
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply(shape, "start");
  Outcome run;
  run.end = job.WaitForEnd(base::seconds(240));
  run.losses = job.Losses();
  EXPECT_EQ(run.end.phase(), pb::JOB_PHASE_COMPLETE) << run.end.message() << job.AllLogs();
  EXPECT_EQ(run.end.samples_done(), run.end.samples_total());
  return run;
}

struct Case {
  const char* name;
  int operations;
  int cut;  // where the second stage begins
  const char* metric;
  double least;
};

class ExamplesTest : public ::testing::TestWithParam<Case> {};

// Two stages of two replicas give the losses of one process.
TEST_P(ExamplesTest, TrainsTheSameInAPipeline) {
  const auto [name, operations, cut, metric, least] = GetParam();
  const JobOptions options = Example(name, operations);
  const Outcome alone = Train(options, {.stages = {{.end = operations, .units = 1}}});
  const Outcome pipeline =
      Train(options,
            {.stages = {{.end = cut, .units = 2}, {.first = cut, .end = operations, .units = 2}}, .micro_batches = 2});
  EXPECT_GT(alone.end.metrics().at(metric), least);
  ASSERT_EQ(alone.losses.size(), pipeline.losses.size());
  double worst = 0;
  for (size_t i = 0; i < alone.losses.size(); ++i) {
    worst = std::max(worst, std::abs(alone.losses[i] - pipeline.losses[i]) / alone.losses[i]);
  }
  std::printf("%s: %s %.4f; largest relative difference of the loss: %.2e\n", name, metric,
              alone.end.metrics().at(metric), worst);
  EXPECT_LT(worst, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(All, ExamplesTest,
                         ::testing::Values(Case{"lenet", 4, 2, "accuracy", 0.4}, Case{"transformer", 6, 1, "auc", 0.85},
                                           Case{"two-tower", 9, 4, "auc", 0.85}),
                         [](const auto& tested) {
                           std::string name = tested.param.name;
                           std::erase(name, '-');
                           return name;
                         });

// Batch norm normalises each micro-batch by itself, so other micro-batches train a little otherwise. After 79 steps its
// running statistics still lag: PyTorch itself has accuracies from 0.3 to 0.85 then, by seed.
TEST(ExamplesOfBatchNormTest, Trains) {
  const Outcome run =
      Train(Example("resnet", 6),
            {.stages = {{.end = 3, .units = 1}, {.first = 3, .end = 6, .units = 1}}, .micro_batches = 2});
  std::printf("resnet: accuracy %.4f; loss %.4f\n", run.end.metrics().at("accuracy"), run.losses.back());
  EXPECT_GT(run.end.metrics().at("accuracy"), 0.2);
  EXPECT_LT(run.losses.back(), 0.6);
}

}  // namespace
}  // namespace medley::worker
