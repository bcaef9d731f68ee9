// The forward pass of `medley predict` against the trainer's own (LibTorch and oneDNN), for every kind of model.
#include "worker/predict/network.h"
#include "common/model/operation_range.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "worker/model/block_model.h"

namespace medley::worker {
namespace {

constexpr int kSamples = 1000;  // several pieces, the last of which is not full
constexpr int kFields = 3;
constexpr int kNumerics = 2;

struct Case {
  std::string name;
  std::vector<model::LayerSpec> layers;
  int64_t rows = 50;
  std::vector<int> hidden = {40, 33};
  int classes = 0;  // 0: a binary classification
};

model::JobSpec JobOf(const Case& c) {
  model::JobSpec job;
  job.model.name = c.name;
  job.model.layers = c.layers;
  job.model.hidden = c.hidden;
  job.model.embedding_dim = 5;
  job.model.embedding_rows = c.rows;
  job.data.train = {"file:///x.csv", "csv"};
  job.data.schema = {.label_column = 0, .categorical = {1, 2, 3}, .numeric = {4, 5}};
  if (c.classes > 0) job.data.schema.task = model::Task::kMultiClass;
  for (int i = 0; i < c.classes; ++i) job.data.schema.label_classes.push_back(std::to_string(i));
  return job;
}

Batch Samples(int64_t rows) {
  base::Rng rng(5);
  Batch batch{.shape = {kFields, kNumerics}, .samples = kSamples};
  for (int i = 0; i < kSamples; ++i) {
    for (int f = 0; f < kFields; ++f) {
      batch.ids.push_back(static_cast<int32_t>(rng.Below(static_cast<uint64_t>(rows))));
    }
    for (int n = 0; n < kNumerics; ++n) batch.numerics.push_back(static_cast<float>(rng.Uniform(-2, 2)));
    batch.labels.push_back(0);
  }
  return batch;
}

class NetworkTest : public testing::TestWithParam<Case> {};

TEST_P(NetworkTest, ComputesWhatTheTrainerComputes) {
  const absl::StatusOr<Graph> graph = BuildGraph(JobOf(GetParam()));
  ASSERT_THAT(graph, base::IsOk());
  const int end = static_cast<int>(graph->operations.size());
  const auto trainer = BlockModel::Create(*graph, {0, end}, *MakeOptimizer("sgd", 0.1), 3);
  ASSERT_THAT(trainer, base::IsOk());
  base::Rng rng(7);
  LoadedModel loaded{.model = {.graph = *graph}, .weights = {}};
  for (const DenseParameter& parameter : (*trainer)->Parameters()) {
    for (float& x : parameter.weights) x = static_cast<float>(rng.Uniform(-0.5, 0.5));
    const Operation& operation = graph->operations[static_cast<size_t>(parameter.spec.operation)];
    loaded.weights[operation.name + "." + parameter.spec.name] = {parameter.weights.begin(), parameter.weights.end()};
  }
  const Batch batch = Samples(GetParam().rows);
  (*trainer)->BeginStep({.step = 1, .global_samples = kSamples});
  int number = 0;
  for (const ParameterSpec& table : graph->Parameters(true)) {
    std::vector<float>& rows = loaded.weights[graph->operations[static_cast<size_t>(table.operation)].name + ".table"];
    for (int64_t i = 0; i < table.Size(); ++i) rows.push_back(static_cast<float>(rng.Uniform(-1, 1)));
    (*trainer)->SetRows(0, number++, rows);
  }
  const auto values = (*trainer)->Infer(batch.View(0, kSamples), {});
  ASSERT_THAT(values, base::IsOk());
  const std::span<const float> expected = values->front();

  Network network(loaded);
  std::vector<float> logits;
  network.Logits(batch, logits);
  ASSERT_EQ(logits.size(), expected.size());
  ASSERT_EQ(logits.size(), static_cast<size_t>(kSamples * graph->Outputs()));
  for (size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], expected[i], 2e-5) << "sample " << i;
  // Again, with the products that were kept.
  std::vector<float> again;
  network.Logits(batch, again);
  for (size_t i = 0; i < again.size(); ++i) ASSERT_NEAR(again[i], logits[i], 1e-5) << "sample " << i;
}

INSTANTIATE_TEST_SUITE_P(
    AllModels, NetworkTest,
    testing::Values(
        Case{.name = "ctrdnn"},
        Case{.name = "ctrdnn", .rows = 400'000, .hidden = {700}},  // more rows than the caches hold
        Case{.name = "mlp"}, Case{.name = "logistic"}, Case{.name = "ctrdnn", .classes = 3},
        Case{.name = "mlp", .classes = 40}, Case{.name = "logistic", .classes = 5},
        Case{.name = "residual", .hidden = {40, 7, 40, 3, 40, 5, 6}},
        Case{.name = "residual", .hidden = {5, 2, 5}, .classes = 3}, Case{.name = "two-tower"},
        Case{.name = "two-tower", .rows = 400'000, .hidden = {300}, .classes = 4},
        Case{.layers = {{"e", "Embedding", 4, ""},
                        {"a", "FullyConnected", 9, "tanh"},
                        {"b", "FullyConnected", 3, "sigmoid"},
                        {"c", "FullyConnected", 1, ""},
                        {"l", "Loss", 0, ""}}},
        Case{.layers = {{"e", "Embedding", 4, ""}, {"c", "FullyConnected", 1, ""}, {"l", "Loss", 0, ""}}},
        Case{.layers = {{.name = "n", .kind = "Numerics"},
                        {.name = "bottom", .kind = "FullyConnected", .out = 6, .activation = "relu"},
                        {.name = "e", .kind = "Embedding", .out = 6, .numerics = false},
                        {.name = "pairs", .kind = "Interaction", .inputs = {"bottom", "e"}, .dim = 6},
                        {.name = "fm", .kind = "FactorizationMachine", .inputs = {"e"}, .dim = 6},
                        {.name = "match", .kind = "Match", .inputs = {"bottom", "e"}, .dim = 3},
                        {.name = "s", .kind = "Slice", .out = 2, .inputs = {"e"}, .dim = 6, .first = 4},
                        {.name = "max", .kind = "Pool", .inputs = {"bottom", "s"}, .dim = 2, .combine = "max"},
                        {.name = "mean", .kind = "Pool", .inputs = {"e"}, .dim = 2, .combine = "mean"},
                        {.name = "cos", .kind = "Cosine", .inputs = {"max", "mean"}},
                        {.name = "dot", .kind = "InnerProduct", .inputs = {"max", "mean"}, .dim = 1},
                        {.name = "x", .kind = "Concat", .inputs = {"n", "bottom", "pairs"}},
                        {.name = "c1", .kind = "Cross"},
                        {.name = "c2", .kind = "Cross", .inputs = {"x", "c1"}},
                        {.name = "deep", .kind = "FullyConnected", .out = 35, .activation = "tanh", .inputs = {"x"}},
                        {.name = "all", .kind = "Concat", .inputs = {"fm", "match", "cos", "dot", "c2", "deep"}},
                        {.name = "a", .kind = "FullyConnected", .out = 1},
                        {.name = "b", .kind = "FullyConnected", .out = 1, .inputs = {"deep"}},
                        {.name = "logit", .kind = "Add", .inputs = {"fm", "a", "b"}},
                        {.name = "l", .kind = "Loss"}}},
        Case{.layers = {{.name = "e", .kind = "Embedding", .out = 4, .combine = "sum", .numerics = true},
                        {.name = "x", .kind = "Cross"},
                        {.name = "c", .kind = "FullyConnected", .out = 3},
                        {.name = "l", .kind = "Loss"}},
             .classes = 3}),
    [](const auto& tested) {
      std::string name = tested.param.name.empty() ? "layers" : tested.param.name;
      std::erase(name, '-');
      return name + std::to_string(tested.index);
    });

}  // namespace
}  // namespace medley::worker
