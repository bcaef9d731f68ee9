#include "worker/model/block_model.h"
#include "common/model/operation_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "worker/data/schema.h"
#include "worker/model/random.h"

namespace medley::worker {
namespace {

constexpr int kSamples = 12;
constexpr int kRows = 7;
constexpr int kDim = 3;
constexpr uint64_t kSeed = 3;

constexpr int kClasses = 3;

model::JobSpec Job(const std::string& name, const std::string& activation, model::Task task = model::Task::kBinary,
                   double dropout = 0) {
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
  if (name == "two-tower") job.data.schema.categorical = {1, 2, 6};
  if (name.empty()) {
    job.model.layers = {{"e", "Embedding", kDim, ""},
                        {"a", "FullyConnected", 5, activation},
                        {"b", "FullyConnected", 4, ""},  // two linear layers in a row
                        {"c", "FullyConnected", model::OutputsOf(job.data.schema), ""},
                        {"l", "Loss", 0, ""}};
    if (dropout > 0) {
      for (const std::ptrdiff_t at : {3, 2, 1}) {
        job.model.layers.insert(job.model.layers.begin() + at, {"d" + std::to_string(at), "Dropout", 0, "", dropout});
      }
    }
  } else {
    job.model.dropout = dropout;
    job.model.hidden = {5, 4};
    if (name == "residual") job.model.hidden = {5, 4, 5, 3, 5};
  }
  return job;
}

Batch Samples(const model::SchemaSpec& schema = Job("ctrdnn", "").data.schema) {
  base::Rng rng(5);
  Batch batch{.shape = ShapeOf(schema), .samples = kSamples};
  const uint64_t values = schema.task == model::Task::kMultiClass ? kClasses : 2;
  for (int i = 0; i < kSamples; ++i) {
    for (int f = 0; f < batch.shape.fields; ++f) batch.ids.push_back(static_cast<int32_t>(rng.Below(kRows)));
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
double RunPass(BlockModel& model, const Batch& batch, std::span<const float> rows, int size) {
  model.BeginStep({.step = 1,
                   .version = model.AppliedStep(),
                   .micro_batches = (kSamples + size - 1) / size,
                   .global_samples = kSamples});
  // All tables together have `rows`.
  for (size_t t = 0; t < model.Tables().size(); ++t) {
    const size_t floats = rows.size() / model.Tables().size();
    model.SetRows(0, static_cast<int>(t), rows.subspan(t * floats, floats));
  }
  for (int first = 0, micro = 0; first < kSamples; first += size, ++micro) {
    const int count = std::min(size, kSamples - first);
    EXPECT_TRUE(model.Forward({0, micro, first}, batch.View(first, count), {}).ok());
    EXPECT_TRUE(model.Backward({0, micro, first}, {}).ok());
  }
  return model.LossSum(0) / kSamples;
}

std::unique_ptr<BlockModel> Whole(const Graph& graph) {
  return *BlockModel::Create(graph, {0, static_cast<int>(graph.operations.size())}, *MakeOptimizer("adagrad", 0.1),
                             kSeed);
}

struct Case {
  std::string name;
  std::string activation;
  model::Task task = model::Task::kBinary;
  double dropout = 0;
};

class GradientTest : public ::testing::TestWithParam<Case> {};

// The gradient must be between the slopes to the left and to the right, which differ at the kink of a ReLU.
TEST_P(GradientTest, AgreesWithFiniteDifferences) {
  const model::JobSpec job = Job(GetParam().name, GetParam().activation, GetParam().task, GetParam().dropout);
  const Graph graph = *BuildGraph(job);
  const std::unique_ptr<BlockModel> model = Whole(graph);
  const Batch batch = Samples(job.data.schema);
  // With zero biases, a sample for which all units of a layer are 0 is exactly at the kinks of the next layer.
  for (const DenseParameter& parameter : model->Parameters()) {
    if (parameter.spec.name != "bias") continue;
    for (size_t i = 0; i < parameter.weights.size(); ++i) parameter.weights[i] = 0.1F + 0.03F * static_cast<float>(i);
  }
  const size_t columns = graph.Parameters(true).empty() ? 1 : static_cast<size_t>(graph.Parameters(true)[0].columns);
  std::vector<float> rows = Rows(columns * std::max<size_t>(1, model->Tables().size()));
  RunPass(*model, batch, rows, 5);
  const std::vector<float> dense(model->Gradients().begin(), model->Gradients().end());
  std::vector<float> sparse;
  for (size_t t = 0; t < model->Tables().size(); ++t) {
    const std::span<const float> gradients = model->RowGradients(0, static_cast<int>(t));
    sparse.insert(sparse.end(), gradients.begin(), gradients.end());
  }
  const double here = RunPass(*model, batch, rows, kSamples);
  const auto check = [&](float gradient, float& value, const std::string& what) {
    constexpr float kStep = 5e-4F;
    constexpr double kTolerance = 1e-3;
    const float saved = value;
    value = saved + kStep;
    const double right = (RunPass(*model, batch, rows, kSamples) - here) / static_cast<double>(kStep);
    value = saved - kStep;
    const double left = (here - RunPass(*model, batch, rows, kSamples)) / static_cast<double>(kStep);
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
                      Case{"ctrdnn", "", model::Task::kMultiLabel}, Case{"residual", ""}, Case{"two-tower", ""},
                      Case{"two-tower", "", model::Task::kMultiClass}, Case{"", "tanh", model::Task::kBinary, 0.3},
                      Case{"", "sigmoid", model::Task::kBinary, 0.5}, Case{"", "relu", model::Task::kRegression, 0.3},
                      Case{"", "", model::Task::kBinary, 0.5}, Case{"residual", "", model::Task::kBinary, 0.3},
                      Case{"two-tower", "", model::Task::kBinary, 0.2}));

TEST(BlockModelTest, MicroBatchesAddUp) {
  const Graph graph = *BuildGraph(Job("", "tanh"));
  const std::unique_ptr<BlockModel> model = Whole(graph);
  const std::vector<float> rows = Rows(kDim);
  const double whole_loss = RunPass(*model, Samples(), rows, kSamples);
  const std::vector<float> whole(model->Gradients().begin(), model->Gradients().end());
  EXPECT_NEAR(RunPass(*model, Samples(), rows, 5), whole_loss, 1e-6);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(model->Gradients()[i], whole[i], 1e-6F);
}

// Runs one step of consecutive blocks, which pass their values and gradients on.
std::vector<float> GradientsOfBlocks(const Graph& graph, const std::vector<model::OperationRange>& ranges,
                                     const Batch& batch, std::span<const float> rows, double& loss) {
  std::vector<std::unique_ptr<BlockModel>> blocks;
  for (const model::OperationRange& range : ranges) {
    blocks.push_back(*BlockModel::Create(graph, range, *MakeOptimizer("adagrad", 0.1), kSeed));
  }
  std::map<int, std::vector<float>> values;     // by operation
  std::map<int, std::vector<float>> gradients;  // of them: the sum over the blocks that use them
  const size_t size = rows.size() / std::max<size_t>(1, graph.Parameters(true).size());
  size_t table = 0;
  for (const std::unique_ptr<BlockModel>& block : blocks) {
    block->BeginStep({.step = 1, .version = block->AppliedStep(), .global_samples = kSamples});
    for (size_t t = 0; t < block->Tables().size(); ++t) {
      block->SetRows(0, static_cast<int>(t), rows.subspan(table++ * size, size));
    }
    std::vector<std::span<const float>> inputs;
    for (const BlockValue& input : block->Inputs()) inputs.push_back(values.at(input.operation));
    const absl::StatusOr<Values> outputs = block->Forward({0, 0}, batch.View(0, kSamples), inputs);
    EXPECT_THAT(outputs, base::IsOk());
    for (size_t k = 0; k < block->Outputs().size(); ++k) {
      values[block->Outputs()[k].operation].assign((*outputs)[k].begin(), (*outputs)[k].end());
    }
    if (block->IsLast()) loss = block->LossSum(0);
  }
  std::vector<std::vector<float>> found;
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    std::vector<std::span<const float>> given;
    for (const BlockValue& output : (*block)->Outputs()) given.push_back(gradients.at(output.operation));
    const absl::StatusOr<Values> back = (*block)->Backward({0, 0}, given);
    EXPECT_THAT(back, base::IsOk());
    for (size_t k = 0; k < (*block)->Inputs().size(); ++k) {
      std::vector<float>& sum = gradients[(*block)->Inputs()[k].operation];
      sum.resize((*back)[k].size());
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += (*back)[k][i];
    }
    found.insert(found.begin(), {(*block)->Gradients().begin(), (*block)->Gradients().end()});
  }
  std::vector<float> all;
  for (const std::vector<float>& part : found) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// However a model is cut into blocks, it computes the same.
TEST(BlockModelTest, BlocksEqualTheWholeModel) {
  for (const auto& [name, dropout] :
       {std::pair("", 0.0), {"residual", 0.0}, {"two-tower", 0.0}, {"", 0.3}, {"residual", 0.3}, {"two-tower", 0.3}}) {
    const model::JobSpec job = Job(name, "relu", model::Task::kBinary, dropout);
    const Graph graph = *BuildGraph(job);
    const int count = static_cast<int>(graph.operations.size());
    const std::unique_ptr<BlockModel> whole = Whole(graph);
    const Batch batch = Samples(job.data.schema);
    const std::vector<float> rows = Rows(kDim * graph.Parameters(true).size());
    RunPass(*whole, batch, rows, kSamples);
    const std::vector<float> expected(whole->Gradients().begin(), whole->Gradients().end());
    std::vector<model::OperationRange> single;
    for (int i = 0; i < count; ++i) single.push_back({i, i + 1});
    std::vector<std::vector<model::OperationRange>> cuts = {single};
    for (int cut = 1; cut < count; ++cut) cuts.push_back({{0, cut}, {cut, count}});
    for (const std::vector<model::OperationRange>& ranges : cuts) {
      double loss = 0;
      const std::vector<float> found = GradientsOfBlocks(graph, ranges, batch, rows, loss);
      EXPECT_DOUBLE_EQ(loss, whole->LossSum(0));
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], 1e-6) << graph.name << ", first block to " << ranges[0].end << ", " << i;
      }
    }
  }
}

// The masks are those of DropoutMask (random.h) by seed, operation, step and sample.
TEST(BlockModelTest, DropsOutByStepAndSampleAndOnlyInTraining) {
  model::JobSpec job = Job("mlp", "");
  job.model.dropout = 0.5;
  const Graph graph = *BuildGraph(job);
  EXPECT_EQ(graph.operations[0].dropout, 0.5);
  EXPECT_EQ(graph.operations[2].dropout, 0) << "the output layer";
  const std::unique_ptr<BlockModel> model = *BlockModel::Create(graph, {0, 2}, *MakeOptimizer("sgd", 0.1), kSeed);
  const std::unique_ptr<BlockModel> without =
      *BlockModel::Create(*BuildGraph(Job("mlp", "")), {0, 2}, *MakeOptimizer("sgd", 0.1), kSeed);
  Batch batch = Samples();
  const auto outputs = [&](BlockModel& of, int64_t step, int first, int count, bool infer) {
    of.BeginStep({.step = step, .version = 0, .global_samples = kSamples});
    BatchView view = batch.View(first, count);
    const absl::StatusOr<Values> found = infer ? of.Infer(view, {}) : of.Forward({0, 0, first}, view, {});
    EXPECT_THAT(found, base::IsOk());
    return std::vector<float>((*found)[0].begin(), (*found)[0].end());
  };
  const std::vector<float> all = outputs(*model, 1, 0, kSamples, false);
  const std::vector<float> some = outputs(*model, 1, 4, 3, false);
  const size_t width = all.size() / kSamples;
  EXPECT_EQ(some, std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(4 * width),
                                     all.begin() + static_cast<std::ptrdiff_t>(7 * width)))
      << "the place in the step's batch decides";
  EXPECT_EQ(all, outputs(*model, 1, 0, kSamples, false)) << "a step that is repeated";
  EXPECT_NE(all, outputs(*model, 2, 0, kSamples, false));
  EXPECT_EQ(outputs(*model, 2, 0, kSamples, true), outputs(*without, 2, 0, kSamples, true))
      << "predictions drop nothing";
  const std::unique_ptr<BlockModel> first = *BlockModel::Create(graph, {0, 1}, *MakeOptimizer("sgd", 0.1), kSeed);
  const std::vector<float> dropped = outputs(*first, 7, 0, kSamples, false);
  std::vector<float> expected = outputs(*first, 7, 0, kSamples, true);
  const size_t units = expected.size() / kSamples;
  for (size_t sample = 0; sample < kSamples; ++sample) {
    std::vector<float> mask(units);
    DropoutMask({.seed = kSeed, .call = 0, .step = 7, .sample = static_cast<int64_t>(sample)}, 0.5, mask);
    for (size_t i = 0; i < units; ++i) expected[sample * units + i] *= mask[i];
  }
  EXPECT_EQ(dropped, expected);
}

// The rows that pass a sum of embeddings on have fixed weights.
TEST(BlockModelTest, WeightsDecayButNotThoseThatAreFixed) {
  const Graph graph = *BuildGraph(Job("logistic", "", model::Task::kMultiClass));
  const std::unique_ptr<BlockModel> model = Whole(graph);
  Optimizer optimizer = *MakeOptimizer("sgd", 0.1);
  optimizer.weight_decay = 0.5F;
  const Batch batch = Samples(Job("logistic", "", model::Task::kMultiClass).data.schema);
  const auto weights = [&] {
    std::vector<float> all;
    for (const DenseParameter& parameter : model->Parameters())
      all.insert(all.end(), parameter.weights.begin(), parameter.weights.end());
    return all;
  };
  const std::vector<float> before = weights();
  RunPass(*model, batch, Rows(kClasses), kSamples);
  const std::vector<float> gradients(model->Gradients().begin(), model->Gradients().end());
  ASSERT_TRUE(model->ApplyUpdate(optimizer).ok());
  const std::vector<float> after = weights();
  constexpr size_t kFixed = kClasses * kClasses;
  for (size_t i = 0; i < before.size(); ++i) {
    const float expected = i < kFixed ? before[i] : before[i] - 0.1F * (gradients[i] + 0.5F * before[i]);
    EXPECT_FLOAT_EQ(after[i], expected) << i;
  }
  EXPECT_EQ(before[0], 1);
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
    RunPass(*model, Samples(), Rows(kDim), kSamples);
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

TEST(BlockModelTest, WithoutUndoUpdatesOverwriteTheValues) {
  for (const char* name : {"sgd", "adagrad", "adam"}) {
    const Optimizer optimizer = *MakeOptimizer(name, 0.1);
    const Graph graph = *BuildGraph(Job("", "tanh"));
    std::vector<std::vector<float>> values;
    for (const int kept : {0, 1}) {
      const auto model =
          BlockModel::Create(graph, {0, static_cast<int>(graph.operations.size())}, optimizer, 1, nullptr, kept);
      ASSERT_TRUE(model.ok());
      for (int64_t step = 1; step <= 3; ++step) {
        RunPass(**model, Samples(), Rows(kDim), kSamples);
        ASSERT_TRUE((*model)->ApplyUpdate(optimizer).ok());
        EXPECT_EQ((*model)->UndoLimit(), step - kept);
      }
      EXPECT_EQ((*model)->UndoTo(2).ok(), kept == 1);
      std::vector<float>& all = values.emplace_back();
      if (kept == 1) {  // again
        RunPass(**model, Samples(), Rows(kDim), kSamples);
        ASSERT_TRUE((*model)->ApplyUpdate(optimizer).ok());
      }
      for (const DenseParameter& parameter : (*model)->Parameters()) {
        all.insert(all.end(), parameter.weights.begin(), parameter.weights.end());
        all.insert(all.end(), parameter.state.begin(), parameter.state.end());
      }
    }
    EXPECT_EQ(values[0], values[1]) << name;
  }
}

TEST(BlockModelTest, EmptyMicroBatchesLeaveZeroGradients) {
  const Graph graph = *BuildGraph(Job("", "tanh"));
  const std::unique_ptr<BlockModel> model = Whole(graph);
  RunPass(*model, Samples(), Rows(kDim), kSamples);
  model->BeginStep({.step = 2, .version = 0, .global_samples = kSamples});
  model->SetRows(0, 0, {});
  EXPECT_TRUE(model->Forward({0, 0}, Samples().View(0, 0), {}).ok());
  EXPECT_TRUE(model->Backward({0, 0}, {}).ok());
  for (const float g : model->Gradients()) EXPECT_EQ(g, 0);
}

TEST(BlockModelTest, RefusesWrongShapes) {
  const Graph graph = *BuildGraph(Job("", "tanh"));
  EXPECT_FALSE(BlockModel::Create(graph, {3, 3}, {}, 1).ok());
  EXPECT_FALSE(BlockModel::Create(graph, {0, 6}, {}, 1).ok());
  const std::unique_ptr<BlockModel> dense = *BlockModel::Create(graph, {1, 5}, {}, 1);
  dense->BeginStep({.step = 1, .version = dense->AppliedStep(), .global_samples = kSamples});
  const Batch batch = Samples();
  EXPECT_FALSE(dense->Forward({0, 0}, batch.View(0, kSamples), {}).ok()) << "no input";
  const std::vector<float> few(7);
  const std::span<const float> input(few);
  EXPECT_THAT(
      dense->Forward({0, 0}, batch.View(0, kSamples), {&input, 1}).status().message(),
      ::testing::HasSubstr("the input of 12 samples for operation 0 has 7 floats, the block needs 8 per sample"));
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
      model->BeginStep({.step = step, .version = step - 1, .micro_batches = 2, .global_samples = kMany});
      model->SetRows(0, 0, Rows(kDim));
      for (int micro = 0; micro < 2; ++micro) {
        ASSERT_TRUE(model->Forward({0, micro}, batch.View(micro * 350, 350), {}).ok());
        ASSERT_TRUE(model->Backward({0, micro}, {}).ok());
      }
      ASSERT_TRUE(model->ApplyUpdate(optimizer).ok());
    }
    losses.push_back(model->LossSum(0));
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
