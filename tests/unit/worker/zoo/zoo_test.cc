// The models of examples/zoo: gradients against LibTorch, learning, and losses that do not depend on the cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/testing/soak.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/operation_range.h"
#include "tests/unit/worker/model/torch_graph.h"
#include "tests/unit/worker/pipeline/pipeline_harness.h"
#include "tests/unit/worker/zoo/random_batch.h"
#include "tests/unit/worker/zoo/zoo_jobs.h"
#include "worker/model/block_model.h"

namespace medley::worker::testing {
namespace {

constexpr int kSamples = 24;
constexpr int kTableRows = 11;  // that a batch uses

// The largest difference, relative to the largest number of the expected ones.
double Difference(std::span<const float> is, const std::vector<double>& expected) {
  EXPECT_EQ(is.size(), expected.size());
  double largest = 0, difference = 0;
  for (const double x : expected) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < is.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(is[i]) - expected[i]));
  }
  return largest == 0 ? difference : difference / largest;
}

// Gradients of all parameters and rows, as the trainer computes them, against those of LibTorch.
void ExpectGradientsOfTorch(const Graph& graph) {
  constexpr double kMost = 1e-5;
  const auto model = *BlockModel::Create(graph, {0, static_cast<int>(graph.operations.size())},
                                         *MakeOptimizer("adagrad", 0.1), 3, std::make_shared<ComputeThreads>(2));
  const Batch batch = RandomBatch(graph, 5, {kSamples, kTableRows});
  base::Rng rng(6);
  std::vector<std::vector<float>> dense, rows;
  for (const DenseParameter& parameter : model->Parameters()) {
    // Biases that are not 0, so that no unit is at the kink of its relu.
    if (parameter.spec.name == "bias") {
      for (float& x : parameter.weights) x = static_cast<float>(rng.Uniform(-0.2, 0.3));
    }
    dense.emplace_back(parameter.weights.begin(), parameter.weights.end());
  }
  model->BeginStep({.step = 1, .version = model->AppliedStep(), .micro_batches = 2, .global_samples = kSamples});
  for (size_t t = 0; t < model->Tables().size(); ++t) {
    std::vector<float>& table = rows.emplace_back(static_cast<size_t>(kTableRows * model->Tables()[t].columns));
    for (float& x : table) x = static_cast<float>(rng.Uniform(-0.7, 0.7));
    model->SetRows(0, static_cast<int>(t), table);
  }
  for (int micro = 0; micro < 2; ++micro) {
    const int first = micro * kSamples / 2;
    ASSERT_THAT(model->Forward({0, micro, first}, batch.View(first, kSamples / 2), {}), base::IsOk());
    ASSERT_THAT(model->Backward({0, micro, first}, {}), base::IsOk());
  }
  const TorchResult torch = ComputeInTorch(graph, batch.View(0, kSamples), dense, rows);
  EXPECT_NEAR(model->LossSum(0) / kSamples / torch.loss, 1, kMost);
  const std::vector<float> gradients(model->Gradients().begin(), model->Gradients().end());
  size_t at = 0;
  for (size_t i = 0; i < torch.dense.size(); ++i) {
    const DenseParameter& parameter = model->Parameters()[i];
    const std::span<const float> mine = std::span(gradients).subspan(at, torch.dense[i].size());
    at += mine.size();
    EXPECT_LE(Difference(mine, torch.dense[i]), kMost)
        << graph.operations[static_cast<size_t>(parameter.spec.operation)].name << "." << parameter.spec.name;
  }
  for (size_t t = 0; t < torch.rows.size(); ++t) {
    EXPECT_LE(Difference(model->RowGradients(0, static_cast<int>(t)), torch.rows[t]), kMost) << "table " << t;
  }
}

class ZooTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ZooTest, GradientsAreThoseOfLibTorch) { ExpectGradientsOfTorch(*BuildGraph(ZooJob(GetParam()))); }

// A model of each layer alone, between an embedding and the numbers on one side and a fully connected layer on the
// other. The numbers are 6, the ids 14.
struct OneLayer {
  std::string name;
  std::vector<model::LayerSpec> layers;
};

class LayerTest : public ::testing::TestWithParam<OneLayer> {};

TEST_P(LayerTest, GradientsAreThoseOfLibTorch) {
  model::JobSpec job = ZooJob("dlrm");
  job.model.layers = {{.name = "numbers", .kind = "Numerics"},
                      {.name = "e", .kind = "Embedding", .out = 6, .fields = 5, .numerics = false},
                      {.name = "f", .kind = "Embedding", .out = 6, .first = 5, .fields = 5, .numerics = false}};
  const std::vector<model::LayerSpec>& mine = GetParam().layers;
  job.model.layers.insert(job.model.layers.end(), mine.begin(), mine.end());
  // What the layer does not take is taken here, so that every layer is used.
  std::vector<std::string> rest = {"numbers", "e", "f", mine.back().name};
  for (const model::LayerSpec& layer : mine) {
    for (const std::string& input : layer.inputs) std::erase(rest, input);
  }
  if (rest.size() > 1) job.model.layers.push_back({.name = "all", .kind = "Concat", .inputs = rest});
  job.model.layers.push_back({.name = "out", .kind = "FullyConnected", .out = 1});
  job.model.layers.push_back({.name = "loss", .kind = "Loss"});
  const absl::StatusOr<Graph> graph = BuildGraph(job);
  ASSERT_TRUE(graph.ok()) << base::ToString(graph.status());
  ExpectGradientsOfTorch(*graph);
}

model::LayerSpec Of(const std::string& kind, std::vector<std::string> inputs, int dim = 0,
                    const std::string& combine = "") {
  return {.name = "x", .kind = kind, .inputs = std::move(inputs), .dim = dim, .combine = combine};
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, LayerTest,
    ::testing::Values(
        OneLayer{"Concat", {Of("Concat", {"numbers", "e", "f"})}}, OneLayer{"Add", {Of("Add", {"e", "f"})}},
        OneLayer{"AddOfThree",
                 {{.name = "s", .kind = "Slice", .out = 6, .inputs = {"e"}, .dim = 30, .first = 3},
                  {.name = "t", .kind = "Slice", .out = 6, .inputs = {"f"}, .dim = 30},
                  Of("Add", {"numbers", "s", "t"})}},
        OneLayer{"Multiply", {Of("Multiply", {"e", "f"})}},
        OneLayer{"PoolSum", {Of("Pool", {"numbers", "e"}, 6, "sum")}},
        OneLayer{"PoolMean", {Of("Pool", {"e", "f"}, 6, "mean")}},
        OneLayer{"PoolMax", {Of("Pool", {"e", "f"}, 6, "max")}},
        OneLayer{"Slice", {{.name = "x", .kind = "Slice", .out = 2, .inputs = {"e"}, .dim = 6, .first = 3}}},
        OneLayer{"Interaction", {Of("Interaction", {"numbers", "e", "f"}, 6)}},
        OneLayer{"InteractionOfOne", {Of("Interaction", {"e"}, 3)}},
        OneLayer{"FactorizationMachine", {Of("FactorizationMachine", {"numbers", "e", "f"}, 6)}},
        OneLayer{"Match", {Of("Match", {"numbers", "f"}, 6)}}, OneLayer{"MatchMany", {Of("Match", {"e", "f"}, 6)}},
        OneLayer{"InnerProduct", {Of("InnerProduct", {"e", "f"}, 6)}},
        OneLayer{"Cosine", {Of("Cosine", {"e", "f"}, 6)}}, OneLayer{"CosineOfAll", {Of("Cosine", {"e", "f"})}},
        OneLayer{"Cross", {Of("Cross", {"e"})}},
        OneLayer{"TwoCross", {{.name = "c", .kind = "Cross", .inputs = {"e"}}, Of("Cross", {"e", "c"})}},
        OneLayer{"EmbeddingSum",
                 {{.name = "x", .kind = "Embedding", .out = 5, .first = 10, .combine = "sum", .numerics = true}}}),
    [](const auto& tested) { return tested.param.name; });

// Losses and metrics of a model that is cut between any two layers are those of one process.
TEST_P(ZooTest, EveryCutHasTheLossesOfOneProcess) {
  constexpr int64_t kSteps = 4;
  model::JobSpec job = ZooJob(GetParam());
  job.training.batch_size = 64;
  // Adagrad makes a step of the same size of a gradient of 1e-10 as of a large one, and so of the last bit of a sum.
  job.training.optimizer = "sgd";
  job.training.learning_rate = 0.1;
  const std::shared_ptr<const Dataset> data =
      *Dataset::Load(job.data.train, job.data, nullptr, {.embedding_rows = job.model.embedding_rows});
  const int count = static_cast<int>(BuildGraph(job)->operations.size());
  const auto expected = Train(job, {{{0, count}}, {{1.0}}}, *data, nullptr, kSteps);
  ASSERT_TRUE(expected.ok()) << base::ToString(expected.status());
  ASSERT_EQ(expected->losses.size(), static_cast<size_t>(kSteps));
  EXPECT_NE(expected->losses.front(), expected->losses.back());
  const auto check = [&](const Layout& layout, const std::string& what) {
    const auto outcome = Train(job, layout, *data, nullptr, kSteps);
    ASSERT_TRUE(outcome.ok()) << what << base::ToString(outcome.status());
    ASSERT_EQ(outcome->losses.size(), expected->losses.size());
    for (size_t i = 0; i < expected->losses.size(); ++i) {
      EXPECT_NEAR(outcome->losses[i] / expected->losses[i], 1, 1e-5) << what << ", step " << i + 1;
    }
  };
  const int every = base::Rounds(3, 1);  // cut with replicas
  for (int cut = 1; cut < count; ++cut) {
    const std::string what = "cut before operation " + std::to_string(cut);
    check({{{0, cut}, {cut, count}}, {{1.0}, {1.0}}, 2}, what);
    if (cut % every != 0 && cut != 1) continue;
    check({{{0, cut}, {cut, count}}, {{0.4, 0.6}, {1, 1}}, 2}, what + " with replicas");
  }
  base::Rng rng(7);
  for (int sample = 0; sample < base::Rounds(2, 4) && count > 3; ++sample) {
    const int first = 1 + static_cast<int>(rng.Below(static_cast<uint64_t>(count - 2)));
    const int second = first + 1 + static_cast<int>(rng.Below(static_cast<uint64_t>(count - first - 1)));
    check({{{0, first}, {first, second}, {second, count}}, {{1}, {1}, {1}}, 2},
          "cuts before operations " + std::to_string(first) + " and " + std::to_string(second));
  }
}

// A block whose gradients of rows have the wrong sign.
class ReversedRows final : public BlockCompute {
 public:
  explicit ReversedRows(std::unique_ptr<BlockCompute> of) : of_(std::move(of)) {}

  std::span<const float> RowGradients(int slot, int table) const override {
    const std::span<const float> right = of_->RowGradients(slot, table);
    std::vector<float>& wrong = reversed_[{slot, table}];
    wrong.assign(right.begin(), right.end());
    for (float& x : wrong) x = -x;
    return wrong;
  }

  const std::vector<BlockValue>& Inputs() const override { return of_->Inputs(); }
  const std::vector<BlockValue>& Outputs() const override { return of_->Outputs(); }
  bool IsLast() const override { return of_->IsLast(); }
  const std::vector<ParameterSpec>& Tables() const override { return of_->Tables(); }
  void BeginStep(const StepShape& shape) override { of_->BeginStep(shape); }
  void SetRows(int slot, int table, std::span<const float> rows) override { of_->SetRows(slot, table, rows); }
  absl::StatusOr<Values> Forward(Pass pass, const BatchView& features, Values inputs) override {
    return of_->Forward(pass, features, inputs);
  }
  absl::StatusOr<Values> Backward(Pass pass, Values gradients) override { return of_->Backward(pass, gradients); }
  absl::StatusOr<Values> Infer(const BatchView& features, Values inputs) override {
    return of_->Infer(features, inputs);
  }
  std::span<float> Gradients() override { return of_->Gradients(); }
  std::vector<DenseParameter> Parameters() override { return of_->Parameters(); }
  double LossSum(int slot) const override { return of_->LossSum(slot); }
  int64_t LossSamples(int slot) const override { return of_->LossSamples(slot); }
  absl::Status ApplyUpdate(const Optimizer& optimizer) override { return of_->ApplyUpdate(optimizer); }
  absl::Status KeepAgreed() override { return of_->KeepAgreed(); }
  void ForgetAgreed() override { of_->ForgetAgreed(); }
  int64_t AppliedStep() const override { return of_->AppliedStep(); }
  int64_t AgreedStep() const override { return of_->AgreedStep(); }
  int64_t UndoLimit() const override { return of_->UndoLimit(); }
  absl::Status UndoTo(int64_t step) override { return of_->UndoTo(step); }
  void SetAppliedStep(int64_t step) override { of_->SetAppliedStep(step); }

 private:
  const std::unique_ptr<BlockCompute> of_;
  mutable std::map<std::pair<int, int>, std::vector<float>> reversed_;
};

// Whether the test also trains this model with reversed gradients, which shows that the bar can tell: every third model
// in each test run.
bool IsReversedToo(const std::string& name) {
  const std::vector<std::string> names = ZooNames();
  return (std::ranges::find(names, name) - names.begin()) % base::Rounds(3, 1) == 0;
}

// The area under the curve of the test data after one epoch of the census. With MEDLEY_ZOO_WHOLE=1 after all epochs of
// the file, as docs/use/models.md has it.
TEST_P(ZooTest, LearnsTheCensusAndNotWithReversedGradients) {
  // Deep networks without shortcuts begin slowly; those of HeterPS are so.
  const std::map<std::string, double> bars = {
      {"ctrdnn-12", 0.9}, {"ctrdnn-16", 0.885}, {"ctrdnn-20", 0.855}, {"nce", 0.77}};
  const bool whole = std::getenv("MEDLEY_ZOO_WHOLE") != nullptr;
  model::JobSpec job = ZooJob(GetParam());
  if (!whole) job.training.epochs = 1;
  const std::shared_ptr<const Dataset> data =
      *Dataset::Load(job.data.train, job.data, nullptr, {.embedding_rows = job.model.embedding_rows});
  const std::shared_ptr<const Dataset> test =
      *Dataset::Load(*job.data.test, job.data, &data->transform(), {.embedding_rows = job.model.embedding_rows});
  const int count = static_cast<int>(BuildGraph(job)->operations.size());
  Layout layout{{{0, count}}, {{1.0}}};
  const auto right = Train(job, layout, *data, test.get(), 0);
  ASSERT_TRUE(right.ok()) << base::ToString(right.status());
  std::printf("%-16s AUC %.4f\n", GetParam().c_str(), right->auc);
  const auto found = bars.find(GetParam());
  const double bar = found == bars.end() ? 0.91 : found->second;
  EXPECT_GE(right->auc, bar);
  if (whole || !IsReversedToo(GetParam())) return;
  layout.block = [](const Graph& graph, model::OperationRange range, const Optimizer& optimizer, uint64_t seed,
                    int kept) -> absl::StatusOr<std::unique_ptr<BlockCompute>> {
    MEDLEY_ASSIGN_OR_RETURN(std::unique_ptr<BlockCompute> block,
                            BlockModel::Create(graph, range, optimizer, seed, nullptr, kept));
    return std::make_unique<ReversedRows>(std::move(block));
  };
  const auto wrong = Train(job, layout, *data, test.get(), 0);
  ASSERT_TRUE(wrong.ok()) << base::ToString(wrong.status());
  std::printf("%-16s AUC %.4f with reversed gradients of rows\n", GetParam().c_str(), wrong->auc);
  EXPECT_LT(wrong->auc, bar);
}

std::string WithCommas(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

int64_t SizeOf(const std::vector<ParameterSpec>& parameters) {
  int64_t sum = 0;
  for (const ParameterSpec& parameter : parameters) sum += parameter.Size();
  return sum;
}

// Bytes of a sample that pass each boundary between two operations: each value once, however many operations take it.
std::string BytesAtCuts(const Graph& graph) {
  std::vector<int> last_use(graph.operations.size(), 0);
  for (size_t i = 0; i < graph.operations.size(); ++i) {
    for (const int input : graph.operations[i].inputs) last_use[static_cast<size_t>(input)] = static_cast<int>(i);
  }
  std::string text;
  for (size_t cut = 1; cut < graph.operations.size(); ++cut) {
    int64_t bytes = 0;
    for (size_t i = 0; i < cut; ++i) {
      if (last_use[i] >= static_cast<int>(cut)) bytes += int64_t{4} * graph.operations[i].output_width;
    }
    text += (text.empty() ? "" : " ") + std::to_string(bytes);
  }
  return text;
}

// docs/use/models.md has a line for each model, with what is computed here.
TEST_P(ZooTest, ThePageHasItsSizes) {
  const Graph graph = *BuildGraph(ZooJob(GetParam()));
  const std::string row = "| [" + GetParam() + "](../../examples/zoo/" + GetParam() + ".yaml) | " +
                          std::to_string(graph.operations.size()) + " | " + WithCommas(SizeOf(graph.Parameters(true))) +
                          " | " + WithCommas(SizeOf(graph.Parameters(false))) + " | " + BytesAtCuts(graph) + " |\n";
  const absl::StatusOr<std::string> page = base::ReadFile(SourceFolder() + "/docs/use/models.md");
  ASSERT_THAT(page, base::IsOk());
  EXPECT_NE(page->find(row), std::string::npos) << "docs/use/models.md lacks the line\n" << row;
}

INSTANTIATE_TEST_SUITE_P(Examples, ZooTest, ::testing::ValuesIn(ZooNames()), [](const auto& tested) {
  std::string name = tested.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace medley::worker::testing
