// A parameter that several operations have (tied weights), trained by executors under plans that put its holders on the
// same and on different devices, against a plain loop of eager PyTorch (tests/data/exported/make_shared.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/program/compile.h"
#include "common/program/text.h"
#include "tests/unit/worker/pipeline/pipeline_harness.h"
#include "worker/aten/aten_block.h"
#include "worker/exported/archive.h"
#include "worker/model/imported_graph.h"

namespace medley::worker::aten {
namespace {

using base::IsOk;
using base::StatusIs;
using ::testing::HasSubstr;
using worker::Graph;
using worker::testing::Layout;

constexpr double kTolerance = 1e-6;
constexpr char kShared[] = "tokens.weight";

std::string GptFolder() { return std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/tests/data/exported/"; }

nlohmann::json GptExpected() {
  std::ifstream file(GptFolder() + "gpt.json");
  return nlohmann::json::parse(file);
}

// The job of the plain loop: its batch is the whole data set.
model::JobSpec GptJob(const nlohmann::json& expected) {
  model::JobSpec job;
  job.model.exported_uri = "file://" + GptFolder() + "gpt.pt2";
  job.model.cut.depth = 2;
  job.data.schema.task = model::Task::kMultiClass;
  for (int c = 0; c < expected["classes"].get<int>(); ++c) {
    job.data.schema.label_classes.push_back(std::to_string(c));
  }
  job.data.schema.label_column = 0;
  for (int i = 0; i < 7; ++i) job.data.schema.categorical.push_back(i + 1);
  job.training.batch_size = static_cast<int>(expected["labels"].size());
  job.training.epochs = static_cast<int>(expected["losses"].size());
  job.training.optimizer = "adam";
  job.training.learning_rate = expected["rate"].get<double>();
  return job;
}

std::shared_ptr<const worker::Dataset> GptData(const nlohmann::json& expected) {
  worker::Batch rows;
  rows.shape = {7, 0, 1};
  rows.samples = static_cast<int>(expected["labels"].size());
  rows.ids = expected["inputs"][0]["values"].get<std::vector<int32_t>>();
  rows.labels = expected["labels"].get<std::vector<float>>();
  return worker::Dataset::FromBatch(std::move(rows));
}

absl::StatusOr<Graph> GptGraphOf(const model::JobSpec& job) {
  MEDLEY_ASSIGN_OR_RETURN(exported::Program program, exported::ReadArchive(GptFolder() + "gpt.pt2"));
  return worker::ImportedGraph(job, std::make_shared<const exported::Program>(std::move(program)));
}

// For each run, the copies of the shared weight at the end, by device.
Layout WithAten(Layout layout) {
  layout.graph = GptGraphOf;
  layout.block = [](const Graph& graph, model::OperationRange range, const worker::Optimizer& optimizer, uint64_t seed,
                    int kept) -> absl::StatusOr<std::unique_ptr<worker::BlockCompute>> {
    return AtenBlock::Create(graph, range, {.optimizer = optimizer, .seed = seed, .kept_updates = kept});
  };
  return layout;
}

void ExpectAsEager(const model::JobSpec& job, const Layout& layout, const std::string& what) {
  SCOPED_TRACE(what);
  const nlohmann::json expected = GptExpected();
  const auto data = GptData(expected);
  const auto graph = GptGraphOf(job);
  ASSERT_THAT(graph.status(), IsOk());
  const Layout with = WithAten(layout);
  const auto run = Train(job, worker::testing::PlanOf(with, *graph), with, *data, nullptr, 0);
  ASSERT_THAT(run.status(), IsOk());
  ASSERT_EQ(run->losses.size(), expected["losses"].size());
  double worst = 0;
  for (size_t i = 0; i < run->losses.size(); ++i) {
    const double wanted = expected["losses"][i].get<double>();
    worst = std::max(worst, std::abs(run->losses[i] - wanted) / wanted);
  }
  std::printf("%s: largest relative difference of the loss: %.1e\n", what.c_str(), worst);
  EXPECT_LT(worst, kTolerance);
  // For every copy, on every device.
  int copies = 0;
  for (const auto& [name, weights] : run->parameters) {
    if (name != kShared) continue;
    ++copies;
    ASSERT_EQ(weights.size(), expected["weight"].size());
    EXPECT_EQ(weights, run->parameters.front().second) << "copies are equal to the last bit";
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(weights[i]), expected["weight"][i].get<double>(), 2e-5) << i;
    }
  }
  EXPECT_GE(copies, 2);
}

TEST(SharedParameterTest, ALanguageModelIsManyOperationsThatShareAWeight) {
  const auto graph = GptGraphOf(GptJob(GptExpected()));
  ASSERT_THAT(graph.status(), IsOk());
  const std::vector<worker::Operation>& operations = graph->operations;
  ASSERT_GE(operations.size(), 5u);
  std::vector<std::pair<int, int>> holders;
  for (size_t i = 0; i < operations.size(); ++i) {
    for (const worker::ParameterSpec& parameter : operations[i].parameters) {
      if (parameter.name == kShared) holders.emplace_back(static_cast<int>(i), parameter.copy_of);
    }
  }
  ASSERT_EQ(holders.size(), 2u);
  EXPECT_EQ(holders[0], std::pair(0, -1));
  EXPECT_EQ(holders[1].second, 0);
  const model::Model model = graph->ToModel();
  EXPECT_EQ(model.layers[0].attributes.at("shared"), "88 tokens.weight\n");
  EXPECT_EQ(model.layers[static_cast<size_t>(holders[1].first)].attributes.at("shared"), "88 tokens.weight\n");
}

TEST(SharedParameterTest, TrainsAsEagerPyTorchWhereverItsHoldersAre) {
  const model::JobSpec job = GptJob(GptExpected());
  const auto graph = GptGraphOf(job);
  ASSERT_THAT(graph.status(), IsOk());
  const int count = static_cast<int>(graph->operations.size());
  ExpectAsEager(job, {.stages = {{0, count}}, .shares = {{1}}}, "1 stage");
  ExpectAsEager(job, {.stages = {{0, count}}, .shares = {{1}}, .bucket_bytes = 1}, "1 stage of many blocks");
  ExpectAsEager(job, {.stages = {{0, count}}, .shares = {{2, 1}}}, "1 stage x 2 replicas");
  ExpectAsEager(job, {.stages = {{0, 1}, {1, count}}, .shares = {{1}, {1}}, .micro_batches = 3}, "2 stages");
  ExpectAsEager(job, {.stages = {{0, 2}, {2, count}}, .shares = {{1, 1}, {2, 1}}, .micro_batches = 2},
                "2 stages x 2 replicas");
  ExpectAsEager(job, {.stages = {{0, 1}, {1, 2}, {2, count}}, .shares = {{1}, {1}, {1}}, .micro_batches = 3},
                "3 stages");
  ExpectAsEager(job,
                {.stages = {{0, 1}, {1, 2}, {2, count}},
                 .shares = {{1, 1}, {1}, {1, 1, 1}},
                 .micro_batches = 2,
                 .schedule = model::ScheduleKind::kGpipe},
                "3 stages of 2, 1 and 3 replicas");
}

TEST(SharedParameterTest, TheNormOfAllGradientsCountsItOnce) {
  model::JobSpec job = GptJob(GptExpected());
  job.training.clip_norm = 0.1;
  const auto data = GptData(GptExpected());
  const auto graph = GptGraphOf(job);
  ASSERT_THAT(graph.status(), IsOk());
  const int count = static_cast<int>(graph->operations.size());
  std::vector<std::vector<double>> losses;
  for (const Layout& layout : {Layout{.stages = {{0, count}}, .shares = {{1}}},
                               Layout{.stages = {{0, 1}, {1, count}}, .shares = {{1, 1}, {1}}, .micro_batches = 2}}) {
    const Layout with = WithAten(layout);
    const auto run = Train(job, worker::testing::PlanOf(with, *graph), with, *data, nullptr, 5);
    ASSERT_THAT(run.status(), IsOk());
    losses.push_back(run->losses);
  }
  EXPECT_THAT(losses[1], ::testing::Pointwise(::testing::DoubleNear(5e-6), losses[0]));
}

TEST(SharedParameterTest, HoldersThatAreUpdatedAtDifferentTimesAreRefused) {
  const auto graph = GptGraphOf(GptJob(GptExpected()));
  ASSERT_THAT(graph.status(), IsOk());
  const int count = static_cast<int>(graph->operations.size());
  Layout layout{.stages = {{0, 1}, {1, count}}, .shares = {{1}, {1}}, .schedule = model::ScheduleKind::kAsync1F1B};
  EXPECT_THAT(program::Compile(worker::testing::PlanOf(layout, *graph), graph->ToModel()).status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("share the parameter 'tokens.weight'")));
}

// A language model of which every token has a label, two in each sample none (-100): the loss is that of PyTorch's
// ignore_index, in stages and replicas too.
TEST(TokenLabelsTest, TrainsAsEagerPyTorch) {
  std::ifstream file(GptFolder() + "tokens.json");
  const nlohmann::json expected = nlohmann::json::parse(file);
  model::JobSpec job = GptJob(GptExpected());
  job.data.train.format = "npy";
  job.data.schema.categorical.clear();
  job.data.schema.label_column = -1;
  job.data.schema.inputs = {{.name = "ids", .type = "int64", .shape = {7}}};
  job.data.schema.label_count = 7;
  auto program = exported::ReadArchive(GptFolder() + "tokens.pt2");
  ASSERT_THAT(program.status(), IsOk());
  const auto shared = std::make_shared<const exported::Program>(*std::move(program));
  const auto graph = worker::ImportedGraph(job, shared);
  ASSERT_THAT(graph.status(), IsOk());
  EXPECT_EQ(graph->Outputs(), 77);
  worker::Batch rows;
  rows.shape = {7, 0, 7};
  rows.samples = 12;
  rows.ids = expected["inputs"][0]["values"].get<std::vector<int32_t>>();
  rows.labels = expected["labels"].get<std::vector<float>>();
  const auto data = worker::Dataset::FromBatch(std::move(rows));
  const int count = static_cast<int>(graph->operations.size());
  for (const Layout& layout :
       {Layout{.stages = {{0, count}}, .shares = {{1}}},
        Layout{.stages = {{0, 2}, {2, count}}, .shares = {{1, 1}, {2, 1}}, .micro_batches = 2}}) {
    Layout with = WithAten(layout);
    with.graph = [&](const model::JobSpec&) -> absl::StatusOr<Graph> { return *graph; };
    const auto run = Train(job, worker::testing::PlanOf(with, *graph), with, *data, nullptr, 0);
    ASSERT_THAT(run.status(), IsOk());
    ASSERT_EQ(run->losses.size(), expected["losses"].size());
    for (size_t i = 0; i < run->losses.size(); ++i) {
      const double wanted = expected["losses"][i].get<double>();
      EXPECT_NEAR(run->losses[i], wanted, kTolerance * wanted) << "step " << i + 1;
    }
  }
  // Without the number of labels, the error says where it goes.
  job.data.schema.label_count = 1;
  EXPECT_THAT(worker::ImportedGraph(job, shared).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("spec.data.schema.label.count")));
}

}  // namespace
}  // namespace medley::worker::aten
