// The jobs of examples/ whose models come from PyTorch, trained by real processes: images, named inputs, dropout, batch
// norm, clipped gradients, embeddings in rows. One epoch, of MNIST's test images where the data are MNIST.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "common/base/file.h"
#include "common/base/testing/soak.h"
#include "common/base/testing/temp_dir.h"
#include "common/document/parse.h"
#include "tests/integration/worker/train_job.h"

namespace medley::worker::examples_test {
namespace {

using Json = nlohmann::json;

// Paths of the pods as those of this machine.
void Map(Json& json, const std::string& examples) {
  if (json.is_structured()) {
    for (Json& child : json) Map(child, examples);
  } else if (json.is_string() && json.get_ref<const std::string&>().starts_with("file:///data/")) {
    json = "file://" + examples + json.get<std::string>().substr(std::string("file:///data").size());
  }
}

// Writes the first `count` samples of a compressed IDX file, whose header has `dimensions` numbers, to a file of
// `folder`, whose name says how many. Returns its URI.
std::string FirstSamples(const std::string& uri, const std::filesystem::path& folder, int dimensions, int count) {
  const std::string path = uri.substr(std::string("file://").size());
  gzFile file = gzopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr) << path;
  std::string text(size_t{1} << 24, '\0');
  const int read = gzread(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  text.resize(static_cast<size_t>(std::max(read, 0)));
  const auto header = 4 + 4 * static_cast<size_t>(dimensions);
  size_t sample = 1;
  for (size_t at = 8; at < header; at += 4) {
    sample *= static_cast<uint8_t>(text.at(at + 2)) * size_t{256} + static_cast<uint8_t>(text.at(at + 3));
  }
  text.resize(header + sample * static_cast<size_t>(count));
  for (int byte = 0; byte < 4; ++byte)
    text[static_cast<size_t>(7 - byte)] = static_cast<char>(count >> (8 * byte) & 255);
  const std::filesystem::path first = folder / (std::to_string(count) + std::filesystem::path(path).stem().string());
  EXPECT_TRUE(base::WriteFileAtomic(first, text).ok()) << first;
  return "file://" + first.string();
}

// A folder that lasts until the process ends.
const std::filesystem::path& Folder() {
  static const struct Made {
    Made() : path(base::MakeTempDir("medley-examples").value()) {}
    ~Made() { base::RemoveTempDir(path); }
    std::filesystem::path path;
  } kMade;
  return kMade.path;
}

constexpr int kImages = 10000;  // in a file of test images
constexpr int kFewImages = 2560;
constexpr int kBatch = 128;

// ./dev test trains on every second image, in batches of half the size: as many steps.
int Share(int number) { return number / base::Rounds(2, 1); }

JobOptions Example(const std::string& name, int operations, std::set<int> tables = {}, int epochs = 1,
                   const std::string& optimizer = "", int images = Share(kImages)) {
  const std::string examples = ExampleData("").parent_path().parent_path().string();
  const auto text = base::ReadFile(examples + "/" + name + "/" + name + ".yaml");
  EXPECT_TRUE(text.ok()) << text.status();
  Json spec = document::ParseYamlStream(*text)->back().at("spec");
  if (spec["data"]["train"]["format"] == "idx") spec["data"]["train"] = spec["data"]["test"];
  Map(spec, examples);
  const auto shorten = [](Json& data, int count) {
    if (data["format"] != "idx" || count == kImages) return;
    data["uri"] = FirstSamples(data["uri"], Folder(), 3, count);
    data["labels"] = FirstSamples(data["labels"], Folder(), 1, count);
  };
  shorten(spec["data"]["train"], images);
  shorten(spec["data"]["test"], base::Rounds(kFewImages, kImages));
  spec["data"].erase("volume");
  spec["checkpoint"] = {{"interval", "3600s"}, {"keep", 3}};
  spec["training"]["epochs"] = epochs;
  if (spec["data"]["train"]["format"] == "idx" && images == Share(kImages)) {
    spec["training"]["batchSize"] = Share(kBatch);
  }
  // Pooling and ReLU choose between numbers that are nearly equal, and a large rate makes the last digits matter: at
  // any rate, losses of the first 20 steps agree to 1e-7.
  if (name == "lenet") spec["training"]["optimizer"] = {{"name", "sgd"}, {"learningRate", 0.005}};
  if (name == "transformer") spec["training"]["optimizer"]["learningRate"] = 0.001;
  if (!optimizer.empty()) {
    spec["training"]["optimizer"] = {{"name", optimizer}, {"learningRate", name == "resnet" ? 0.001 : 0.02}};
  }
  JobOptions options;
  options.spec_json = spec.dump();
  options.operations = operations;
  options.tables = std::move(tables);
  return options;
}

struct Case {
  const char* name;
  int operations;
  int cut;  // where the second stage begins
  const char* metric;
  double least;
  std::set<int> tables = {};  // operations whose rows are on parameter servers, in the pipeline
  int epochs = 1;
};

class ExamplesTest : public ::testing::TestWithParam<Case> {};

// Two stages of two replicas give the losses of one process, with tables on two parameter servers too.
TEST_P(ExamplesTest, TrainsTheSameInAPipeline) {
  const auto [name, operations, cut, metric, least, tables, epochs] = GetParam();
  const JobOptions options = Example(name, operations, tables, epochs);
  const Outcome alone = Train(options, {.stages = {{.end = operations, .units = 1}}});
  const Outcome pipeline =
      Train(options, {.stages = {{.end = cut, .units = 2}, {.first = cut, .end = operations, .units = 2}},
                      .servers = tables.empty() ? 0 : 2,
                      .micro_batches = 2});
  EXPECT_GT(alone.end.metrics().at(metric), least);
  const double begin = LargestDifference(alone, pipeline, /*steps=*/20), worst = LargestDifference(alone, pipeline);
  std::printf("%s: %s %.4f; largest relative difference of the loss: %.2e, in 20 steps %.2e\n", name, metric,
              alone.end.metrics().at(metric), worst, begin);
  EXPECT_LT(begin, 1e-5);
  EXPECT_LT(worst, name == std::string("lenet") ? 1e-2 : 1e-4);
}

INSTANTIATE_TEST_SUITE_P(All, ExamplesTest,
                         ::testing::Values(Case{"lenet", 4, 2, "accuracy", 0.6, {}, 2},
                                           Case{"transformer", 6, 1, "auc", 0.85},
                                           Case{"two-tower", 9, 4, "auc", 0.85, {0, 4}}),
                         [](const auto& tested) {
                           std::string name = tested.param.name;
                           std::erase(name, '-');
                           return name;
                         });

// The rows of tables move between servers, and survive a process that is killed.
TEST(ExamplesOfTablesTest, RowsSurviveChangesOfPlan) {
  constexpr int kOperations = 9, kEpochs = 2;
  const JobOptions options = Example("two-tower", kOperations, {0, 4}, kEpochs, "sgd");
  const JobShape first{.stages = {{.end = 4, .units = 1}, {.first = 4, .end = kOperations, .units = 2}}, .servers = 2};
  const JobShape then{.stages = {{.end = kOperations, .units = 2}}, .servers = 3};
  const Outcome alone = Train(options, {.stages = {{.end = kOperations, .units = 1}}});
  const Outcome changed = Train(options, first, &then, /*kill=*/true);
  const double losses = LargestDifference(alone, changed), weights = WeightDifference(alone, changed);
  std::printf(
      "two-tower, a change of plan, a process killed: largest relative difference of the loss: %.2e; of the "
      "weights: %.2e\n",
      losses, weights);
  EXPECT_LT(losses, 1e-4);
  EXPECT_LT(weights, 1e-4);
}

// With the settings of its example: momentum, a cosine schedule, clipped gradients. After one epoch of 79 steps the
// running statistics of batch norms still lag: PyTorch itself has accuracies from 0.3 to 0.85 then, by seed, and the
// rounding of another processor gave 0.2.
TEST(ExamplesOfBatchNormTest, Trains) {
  const Outcome run =
      Train(Example("resnet", 6, {}, /*epochs=*/2),
            {.stages = {{.end = 3, .units = 1}, {.first = 3, .end = 6, .units = 1}}, .micro_batches = 2});
  constexpr int kLast = 20;  // the loss of one batch is noisy
  ASSERT_GE(run.losses.size(), size_t{kLast});
  const double loss = std::accumulate(run.losses.end() - kLast, run.losses.end(), 0.0) / kLast;
  std::printf("resnet: accuracy %.4f; loss of the last batch %.4f, of %d %.4f\n", run.end.metrics().at("accuracy"),
              run.losses.back(), kLast, loss);
  EXPECT_GT(run.end.metrics().at("accuracy"), 0.2);
  EXPECT_LT(loss, 0.6);
}

// Batch norm normalises what a replica has of a micro-batch by itself. Four micro-batches of one replica are the same
// samples as two micro-batches of two replicas, so they train the same. Where gradients are added in the same order
// too, the weights have the same bits, wherever the stages are cut.
TEST(ExamplesOfBatchNormTest, TrainsTheSameWithTheSameSplit) {
  constexpr int kOperations = 6;
  // One epoch of 20 steps, or three of 79.
  const JobOptions options =
      Example("resnet", kOperations, {}, base::Rounds(1, 3), "sgd", base::Rounds(kFewImages, kImages));
  const auto train = [&](int cut, int units, int micro_batches) {
    return Train(options, {.stages = {{.end = cut, .units = units}, {.first = cut, .end = kOperations, .units = units}},
                           .micro_batches = micro_batches});
  };
  const Outcome alone = train(3, 1, 4), pipeline = train(3, 2, 2), other = train(1, 2, 2);
  const double losses = LargestDifference(alone, pipeline), weights = WeightDifference(alone, pipeline);
  std::printf("resnet, %zu steps: accuracy %.4f; largest difference of the loss %.2e, of the weights %.2e\n",
              alone.losses.size(), alone.end.metrics().at("accuracy"), losses, weights);
  EXPECT_LT(alone.losses.back(), alone.losses.front());
  EXPECT_LT(losses, 1e-4);
  EXPECT_EQ(pipeline.losses, other.losses) << "every bit";
  EXPECT_EQ(pipeline.weights, other.weights) << "every bit";
}

}  // namespace
}  // namespace medley::worker::examples_test
