#include "worker/model/block_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "worker/data/schema.h"

namespace medley::worker {
namespace {

constexpr int kSamples = 12;
constexpr int kRows = 7;
constexpr int kDim = 3;
constexpr uint64_t kSeed = 3;

constexpr int kClasses = 3;

model::JobSpec Job(const std::string& name, const std::string& activation, model::Task task = model::Task::kBinary) {
  model::JobSpec job;
  job.model.embedding_dim = kDim;
  job.model.embedding_rows = kRows;
  job.data.train = {"file:///x.csv", "csv"};
  job.data.schema = {.label_column = 0, .categorical = {1, 2}, .numeric = {3, 4}};
  job.model.name = name;
  job.data.schema.task = task;
  if (task == model::Task::kMultiClass) job.data.schema.label_classes = {"a", "b", "c"};
  if (task == model::Task::kMultiLabel) {
    job.data.schema.label_column = -1;
    job.data.schema.label_columns = {0, 5};
  }
  if (name.empty()) {
    job.model.layers = {{"e", "Embedding", kDim, ""},
                        {"a", "FullyConnected", 5, activation},
                        {"b", "FullyConnected", 4, ""},  // two linear layers in a row
                        {"c", "FullyConnected", model::OutputsOf(job.data.schema), ""},
                        {"l", "Loss", 0, ""}};
  } else {
    job.model.hidden = {5, 4};
  }
  return job;
}

Batch Samples(const model::SchemaSpec& schema = Job("ctrdnn", "").data.schema) {
  base::Rng rng(5);
  Batch batch{.shape = ShapeOf(schema), .samples = kSamples};
  const uint64_t values = schema.task == model::Task::kMultiClass ? kClasses : 2;
  for (int i = 0; i < kSamples; ++i) {
    for (int f = 0; f < 2; ++f) batch.ids.push_back(static_cast<int32_t>(rng.Below(kRows)));
    for (int n = 0; n < 2; ++n) batch.numerics.push_back(static_cast<float>(rng.Uniform(-1, 1)));
    for (int l = 0; l < batch.shape.labels; ++l) batch.labels.push_back(static_cast<float>(rng.Below(values)));
  }
  return batch;
}

std::vector<float> Rows(size_t columns) {
  base::Rng rng(6);
  std::vector<float> rows(kRows * columns);
  for (float& x : rows) x = static_cast<float>(rng.Uniform(-1, 1));
  return rows;
}

// Runs forward and backward passes of the whole batch in micro-batches of `size`; returns the mean loss.
double Pass(BlockModel& model, const Batch& batch, std::span<const float> rows, int size) {
  model.BeginStep({1, (kSamples + size - 1) / size, kSamples});
  if (!model.Tables().empty()) model.SetRows(0, rows);
  for (int first = 0, micro = 0; first < kSamples; first += size, ++micro) {
    const int count = std::min(size, kSamples - first);
    EXPECT_TRUE(model.Forward(micro, batch.View(first, count), {}).ok());
    EXPECT_TRUE(model.Backward(micro, {}).ok());
  }
  return model.LossSum() / kSamples;
}

std::unique_ptr<BlockModel> Whole(const Graph& graph) {
  return *BlockModel::Create(graph, {0, static_cast<int>(graph.operations.size())}, *MakeOptimizer("adagrad", 0.1),
                             kSeed);
}

struct Case {
  std::string name;
  std::string activation;
  model::Task task = model::Task::kBinary;
};

class GradientTest : public ::testing::TestWithParam<Case> {};

// The gradient must be between the slopes to the left and to the right, which differ at the kink of a ReLU.
TEST_P(GradientTest, AgreesWithFiniteDifferences) {
  const model::JobSpec job = Job(GetParam().name, GetParam().activation, GetParam().task);
  const Graph graph = *BuildGraph(job);
  const std::unique_ptr<BlockModel> model = Whole(graph);
  const Batch batch = Samples(job.data.schema);
  // With zero biases, a sample for which all units of a layer are 0 is exactly at the kinks of the next layer.
  for (const DenseParameter& parameter : model->Parameters()) {
    if (parameter.spec.name != "bias") continue;
    for (size_t i = 0; i < parameter.weights.size(); ++i) parameter.weights[i] = 0.1F + 0.03F * static_cast<float>(i);
  }
  const size_t columns = graph.Parameters(true).empty() ? 1 : static_cast<size_t>(graph.Parameters(true)[0].columns);
  std::vector<float> rows = Rows(columns);
  Pass(*model, batch, rows, 5);
  const std::vector<float> dense(model->Gradients().begin(), model->Gradients().end());
  const std::vector<float> sparse =
      model->Tables().empty() ? std::vector<float>()
                              : std::vector<float>(model->RowGradients(0).begin(), model->RowGradients(0).end());
  const double here = Pass(*model, batch, rows, kSamples);
  const auto check = [&](float gradient, float& value, const std::string& what) {
    constexpr float kStep = 5e-4F;
    constexpr double kTolerance = 1e-3;
    const float saved = value;
    value = saved + kStep;
    const double right = (Pass(*model, batch, rows, kSamples) - here) / static_cast<double>(kStep);
    value = saved - kStep;
    const double left = (here - Pass(*model, batch, rows, kSamples)) / static_cast<double>(kStep);
    value = saved;
    EXPECT_GE(static_cast<double>(gradient), std::min(left, right) - kTolerance) << what;
    EXPECT_LE(static_cast<double>(gradient), std::max(left, right) + kTolerance) << what;
  };
  size_t at = 0;
  for (const DenseParameter& parameter : model->Parameters()) {
    const bool fixed_row = GetParam().name == "logistic" && parameter.spec.name == "weight";
    for (size_t i = 0; i < parameter.weights.size(); ++i, ++at) {
      if (fixed_row && i < static_cast<size_t>(parameter.spec.columns * parameter.spec.columns)) {
        EXPECT_EQ(dense[at], 0);
      } else {
        check(dense[at], parameter.weights[i], parameter.spec.name + std::to_string(i));
      }
    }
  }
  EXPECT_EQ(at, dense.size());
  for (size_t i = 0; i < sparse.size(); ++i) {
    check(sparse[i], rows[i], "row float " + std::to_string(i));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, GradientTest,
    ::testing::Values(Case{"", "tanh"}, Case{"", "sigmoid"}, Case{"", "relu"}, Case{"", ""}, Case{"ctrdnn", ""},
                      Case{"mlp", ""}, Case{"logistic", ""}, Case{"ctrdnn", "", model::Task::kRegression},
                      Case{"mlp", "", model::Task::kMultiClass}, Case{"", "tanh", model::Task::kMultiClass},
                      Case{"logistic", "", model::Task::kMultiClass}, Case{"logistic", "", model::Task::kMultiLabel},
                      Case{"ctrdnn", "", model::Task::kMultiLabel}));

TEST(BlockModelTest, MicroBatchesAddUp) {
  const Graph graph = *BuildGraph(Job("", "tanh"));
  const std::unique_ptr<BlockModel> model = Whole(graph);
  const std::vector<float> rows = Rows(kDim);
  const double whole_loss = Pass(*model, Samples(), rows, kSamples);
  const std::vector<float> whole(model->Gradients().begin(), model->Gradients().end());
  EXPECT_NEAR(Pass(*model, Samples(), rows, 5), whole_loss, 1e-6);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(model->Gradients()[i], whole[i], 1e-6F);
}

TEST(BlockModelTest, TwoStagesEqualOne) {
  const Graph graph = *BuildGraph(Job("", "relu"));
  const Optimizer optimizer = *MakeOptimizer("adagrad", 0.1);
  const std::unique_ptr<BlockModel> whole = Whole(graph);
  const std::unique_ptr<BlockModel> first = *BlockModel::Create(graph, {0, 2}, optimizer, kSeed);
  const std::unique_ptr<BlockModel> second = *BlockModel::Create(graph, {2, 5}, optimizer, kSeed);
  EXPECT_EQ(first->OutputWidth(), 5);
  EXPECT_EQ(second->InputWidth(), 5);
  const Batch batch = Samples();
  const std::vector<float> rows = Rows(kDim);
  Pass(*whole, batch, rows, kSamples);
  first->BeginStep({1, 1, kSamples});
  second->BeginStep({1, 1, kSamples});
  first->SetRows(0, rows);
  const auto activations = first->Forward(0, batch.View(0, kSamples), {});
  ASSERT_TRUE(activations.ok());
  ASSERT_TRUE(second->Forward(0, batch.View(0, kSamples), *activations).ok());
  const auto gradient = second->Backward(0, {});
  ASSERT_TRUE(gradient.ok());
  ASSERT_TRUE(first->Backward(0, *gradient).ok());
  EXPECT_DOUBLE_EQ(second->LossSum(), whole->LossSum());
  std::vector<float> both(first->Gradients().begin(), first->Gradients().end());
  both.insert(both.end(), second->Gradients().begin(), second->Gradients().end());
  for (size_t i = 0; i < both.size(); ++i) EXPECT_FLOAT_EQ(both[i], whole->Gradients()[i]);
}

TEST(BlockModelTest, UndoesOneStepAndNoMore) {
  const Optimizer optimizer = *MakeOptimizer("adagrad", 0.1);
  const Graph graph = *BuildGraph(Job("", "tanh"));
  const std::unique_ptr<BlockModel> model = Whole(graph);
  const auto values = [&] {
    std::vector<float> all;
    for (const DenseParameter& parameter : model->Parameters()) {
      all.insert(all.end(), parameter.weights.begin(), parameter.weights.end());
      all.insert(all.end(), parameter.state.begin(), parameter.state.end());
    }
    return all;
  };
  const auto step = [&] {
    Pass(*model, Samples(), Rows(kDim), kSamples);
    ASSERT_TRUE(model->ApplyUpdate(optimizer).ok());
  };
  step();
  const std::vector<float> one = values();
  step();
  const std::vector<float> two = values();
  EXPECT_NE(one, two);
  EXPECT_EQ(model->UndoLimit(), 1);
  ASSERT_TRUE(model->UndoTo(1).ok());
  EXPECT_EQ(values(), one);
  EXPECT_EQ(model->AppliedStep(), 1);
  EXPECT_EQ(model->UndoTo(0).code(), absl::StatusCode::kFailedPrecondition);
  step();
  EXPECT_EQ(values(), two);
}

TEST(BlockModelTest, EmptyMicroBatchesLeaveZeroGradients) {
  const Graph graph = *BuildGraph(Job("", "tanh"));
  const std::unique_ptr<BlockModel> model = Whole(graph);
  Pass(*model, Samples(), Rows(kDim), kSamples);
  model->BeginStep({2, 1, kSamples});
  model->SetRows(0, {});
  EXPECT_TRUE(model->Forward(0, Samples().View(0, 0), {}).ok());
  EXPECT_TRUE(model->Backward(0, {}).ok());
  for (const float g : model->Gradients()) EXPECT_EQ(g, 0);
}

TEST(BlockModelTest, RefusesWrongShapes) {
  const Graph graph = *BuildGraph(Job("", "tanh"));
  EXPECT_FALSE(BlockModel::Create(graph, {3, 3}, {}, 1).ok());
  EXPECT_FALSE(BlockModel::Create(graph, {0, 6}, {}, 1).ok());
  const std::unique_ptr<BlockModel> dense = *BlockModel::Create(graph, {1, 5}, {}, 1);
  dense->BeginStep({1, 1, kSamples});
  const Batch batch = Samples();
  EXPECT_FALSE(dense->Forward(0, batch.View(0, kSamples), std::vector<float>(7)).ok());
}

TEST(BlockModelTest, ParametersDoNotDependOnTheRange) {
  const Graph graph = *BuildGraph(Job("", "tanh"));
  const std::unique_ptr<BlockModel> part = *BlockModel::Create(graph, {2, 3}, {}, kSeed);
  const std::unique_ptr<BlockModel> whole = Whole(graph);
  const DenseParameter expected = whole->Parameters()[2];
  const DenseParameter found = part->Parameters()[0];
  EXPECT_EQ(found.spec, expected.spec);
  EXPECT_TRUE(std::equal(found.weights.begin(), found.weights.end(), expected.weights.begin()));
}

// A plan with other units must not train other numbers.
TEST(BlockModelThreadsTest, TheNumberOfThreadsChangesNoBit) {
  constexpr int kMany = 700;  // no multiple of 16
  model::JobSpec job = Job("ctrdnn", "");
  job.model.hidden = {130, 300, 64};
  const Graph graph = *BuildGraph(job);
  const Optimizer optimizer = *MakeOptimizer("adagrad", 0.1);
  const Batch few = Samples();
  Batch batch{.shape = few.shape, .samples = kMany};
  for (int i = 0; i < kMany; ++i) {
    const size_t from = static_cast<size_t>(i % kSamples) * 2;
    batch.ids.insert(batch.ids.end(), &few.ids[from], &few.ids[from] + 2);
    batch.numerics.push_back(few.numerics[from] + static_cast<float>(i) * 0.001F);
    batch.numerics.push_back(few.numerics[from + 1]);
    batch.labels.push_back(few.labels[from / 2]);
  }
  std::vector<std::vector<float>> weights;
  std::vector<double> losses;
  for (const int threads : {1, 2, 3, 8}) {
    const auto model = *BlockModel::Create(graph, {0, static_cast<int>(graph.operations.size())}, optimizer, kSeed,
                                           std::make_shared<ComputeThreads>(threads));
    for (int64_t step = 1; step <= 3; ++step) {
      model->BeginStep({step, 2, kMany});
      model->SetRows(0, Rows(kDim));
      for (int micro = 0; micro < 2; ++micro) {
        ASSERT_TRUE(model->Forward(micro, batch.View(micro * 350, 350), {}).ok());
        ASSERT_TRUE(model->Backward(micro, {}).ok());
      }
      ASSERT_TRUE(model->ApplyUpdate(optimizer).ok());
    }
    losses.push_back(model->LossSum());
    std::vector<float>& all = weights.emplace_back();
    for (const DenseParameter& parameter : model->Parameters()) {
      all.insert(all.end(), parameter.weights.begin(), parameter.weights.end());
    }
  }
  for (size_t i = 1; i < weights.size(); ++i) {
    EXPECT_EQ(weights[i], weights[0]);
    EXPECT_EQ(losses[i], losses[0]);
  }
}

}  // namespace
}  // namespace medley::worker
