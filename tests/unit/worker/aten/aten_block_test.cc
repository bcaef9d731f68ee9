// Exported models against PyTorch's own numbers (tests/data/exported/make.py): as one block, divided in every place, in
// micro-batches; in the host's memory, and in that of a device.
#include "worker/aten/aten_block.h"
#include "common/model/operation_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <tuple>

#include "common/base/status.h"
#include "tests/unit/worker/aten/exported_sample.h"
#include "worker/aten/testing/tested_device.h"
#include "worker/device/testing/needs_gpu.h"
#include "worker/exported/archive.h"
#include "worker/model/imported_graph.h"
#include "worker/params/initialize.h"
#include "worker/pipeline/shared_gradients.h"

namespace medley::worker::aten {
namespace {

using worker::Batch;
using worker::BatchView;
using worker::Graph;
using worker::Optimizer;

Optimizer Sgd() {
  Optimizer optimizer;
  optimizer.kind = worker::OptimizerKind::kSgd;
  optimizer.learning_rate = 0.1F;
  return optimizer;
}

// Where blocks compute: in the host's memory, or on the test device, which in the build with CUDA is a GPU.
enum class Where { kHost, kDevice };

std::shared_ptr<device::Device> DeviceOf(Where where) {
  if (where == Where::kHost) return nullptr;
  auto device = OpenTestedDevice();
  EXPECT_TRUE(device.ok()) << device.status();
  return device.ok() ? *device : nullptr;
}

std::string NameOf(Where where) { return where == Where::kHost ? "Host" : "Device"; }

bool NeedsGpu(Where where) { return where == Where::kDevice && device::BuiltForGpus(); }

std::vector<float> ValuesOf(worker::BlockCompute& block, size_t index, worker::DensePart part) {
  std::vector<float> values(static_cast<size_t>(block.Parameters()[index].spec.Size()));
  EXPECT_TRUE(block.ReadValues(index, part, 0, values).ok());
  return values;
}

// A table of a block, which holds the rows of a step only.
struct Table {
  worker::ParameterSpec spec;
  AtenBlock* block = nullptr;
  int number = 0;  // within the block
  std::vector<float> values, gradient;
};

struct Blocks : std::vector<std::unique_ptr<AtenBlock>> {
  std::vector<Table> tables;
};

// The sample's numbers of a table become positions among the distinct ones, whose rows the block gets.
std::vector<uint64_t> GiveRows(const Table& table, Batch& batch) {
  std::set<uint64_t> distinct;
  const auto each = [&](const auto& visit) {
    for (int sample = 0; sample < batch.samples; ++sample) {
      for (int field = 0; field < table.spec.fields; ++field) {
        visit(batch.ids[static_cast<size_t>(sample * batch.shape.fields + table.spec.first_field + field)]);
      }
    }
  };
  each([&](int32_t id) { distinct.insert(static_cast<uint64_t>(id)); });
  const std::vector<uint64_t> keys(distinct.begin(), distinct.end());
  each([&](int32_t& id) {
    id = static_cast<int32_t>(std::ranges::lower_bound(keys, static_cast<uint64_t>(id)) - keys.begin());
  });
  std::vector<float> rows;
  for (const uint64_t key : keys) {
    const auto row = std::span(table.values).subspan(key * static_cast<size_t>(table.spec.columns));
    rows.insert(rows.end(), row.begin(), row.begin() + table.spec.columns);
  }
  table.block->SetRows(0, table.number, rows);
  return keys;
}

void TakeGradients(Table& table, const std::vector<uint64_t>& keys) {
  const auto columns = static_cast<size_t>(table.spec.columns);
  table.gradient.assign(table.values.size(), 0);
  const auto rows = table.block->RowGradients(0, table.number);
  ASSERT_EQ(rows.size(), keys.size() * columns);
  for (size_t k = 0; k < keys.size(); ++k) {
    std::copy_n(rows.begin() + static_cast<ptrdiff_t>(k * columns), columns,
                table.gradient.begin() + static_cast<ptrdiff_t>(keys[k] * columns));
  }
}

Blocks BlocksOf(const Graph& graph, const std::vector<int>& cuts, Where where = Where::kHost) {
  Blocks blocks;
  const std::shared_ptr<device::Device> device = DeviceOf(where);
  int first = 0;
  std::vector<int> ends = cuts;
  ends.push_back(static_cast<int>(graph.operations.size()));
  for (const int end : ends) {
    auto block = AtenBlock::Create(graph, {first, end}, {.optimizer = Sgd(), .seed = 11, .device = device});
    EXPECT_TRUE(block.ok()) << block.status();
    for (const worker::ParameterSpec& spec : (*block)->Tables()) {
      Table& table = blocks.tables.emplace_back(Table{.spec = spec, .block = block->get()});
      table.number = static_cast<int>(&spec - (*block)->Tables().data());
      table.values.resize(static_cast<size_t>(spec.Size()));
      worker::Initialize(spec, 11, table.values);
    }
    blocks.push_back(*std::move(block));
    first = end;
  }
  return blocks;
}

// The values of a block's inputs, from what other blocks gave.
using Known = std::map<int, std::vector<float>>;  // by operation

void UpdateTables(Blocks& blocks) {
  for (Table& table : blocks.tables) {
    for (size_t i = 0; i < table.values.size(); ++i) table.values[i] -= Sgd().learning_rate * table.gradient[i];
  }
}

// The gradients of parameters that several operations have, as a program adds them.
void AddShared(Blocks& blocks) {
  std::map<std::string, std::vector<worker::SharedHolder>> holders;
  std::set<std::string> shared;
  for (auto& block : blocks) {
    std::set<std::string> names;
    for (const auto& parameter : block->Parameters()) {
      names.insert(parameter.spec.name);
      if (parameter.spec.copy_of >= 0) shared.insert(parameter.spec.name);
    }
    for (const std::string& name : names) holders[name].push_back({block.get(), true});
  }
  for (const std::string& name : shared) {
    EXPECT_TRUE(worker::SumShared(name, holders[name], [](std::span<float>) { return absl::OkStatus(); }).ok());
  }
}

// One step of a chain of blocks. Returns the mean loss. Gradients are applied unless `apply` is false.
double Step(Blocks& blocks, const Batch& samples, int64_t step, int micros, bool apply = true) {
  Batch batch = samples;
  for (auto& block : blocks) {
    block->BeginStep({.step = step, .version = step - 1, .micro_batches = micros, .global_samples = batch.samples});
  }
  std::vector<std::vector<uint64_t>> keys;
  for (const Table& table : blocks.tables) keys.push_back(GiveRows(table, batch));
  const int each = batch.samples / micros;
  for (int m = 0; m < micros; ++m) {
    const BatchView view = batch.View(m * each, each);
    const worker::Pass pass{.slot = 0, .micro = m, .first_sample = m * each};
    Known values, gradients;
    std::vector<std::vector<std::span<const float>>> inputs(blocks.size());
    for (size_t b = 0; b < blocks.size(); ++b) {
      for (const auto& input : blocks[b]->Inputs()) inputs[b].emplace_back(values.at(input.operation));
      const auto outputs = blocks[b]->Forward(pass, view, inputs[b]);
      EXPECT_TRUE(outputs.ok()) << outputs.status();
      for (size_t k = 0; k < outputs->size(); ++k) {
        const auto& value = (*outputs)[k];
        values[blocks[b]->Outputs()[k].operation].assign(value.begin(), value.end());
      }
    }
    for (const auto& [operation, value] : values) gradients[operation].assign(value.size(), 0);
    for (size_t b = blocks.size(); b-- > 0;) {
      std::vector<std::span<const float>> given;
      for (const auto& output : blocks[b]->Outputs()) given.emplace_back(gradients.at(output.operation));
      const auto found = blocks[b]->Backward(pass, given);
      EXPECT_TRUE(found.ok()) << found.status();
      for (size_t k = 0; k < found->size(); ++k) {
        std::vector<float>& sum = gradients[blocks[b]->Inputs()[k].operation];
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += (*found)[k][i];
      }
    }
  }
  double loss = 0;
  for (size_t t = 0; t < keys.size(); ++t) TakeGradients(blocks.tables[t], keys[t]);
  AddShared(blocks);
  for (auto& block : blocks) {
    loss += block->LossSum(0);
    if (!apply) continue;
    EXPECT_TRUE(block->ApplyUpdate(Sgd()).ok());
  }
  if (apply) UpdateTables(blocks);
  return loss / batch.samples;
}

// The distance of two vectors, relative to the expected one if that is not tiny. The gradient of a bias before a batch
// norm is 0 but for rounding (1.8e-7 in conv), which differs between processors.
double Distance(std::span<const float> a, const nlohmann::json& b) {
  constexpr double kTiny = 1e-2;
  double difference = 0, size = kTiny * kTiny;
  for (size_t i = 0; i < a.size(); ++i) {
    const double expected = b[i].get<double>();
    difference += (a[i] - expected) * (a[i] - expected);
    size += expected * expected;
  }
  return std::sqrt(difference / size);
}

class ExportedModelTest : public ::testing::TestWithParam<std::tuple<Where, const char*>> {};

void ExpectAsPyTorch(const std::string& name, Where where, const model::CutSpec& cut, const std::vector<int>& cuts) {
  const nlohmann::json expected = Expected(name);
  const Sample sample = SampleOf(name, expected);
  const Graph graph = GraphOf(name, sample, cut);
  Blocks blocks = BlocksOf(graph, cuts, where);
  for (int step = 1; step <= static_cast<int>(expected["losses"].size()); ++step) {
    const double loss = Step(blocks, sample.batch, step, 1, /*apply=*/false);
    EXPECT_NEAR(loss, expected["losses"][static_cast<size_t>(step) - 1].get<double>(), 2e-5)
        << name << ", step " << step;
    size_t compared = 0;
    for (auto& block : blocks) {
      const std::vector<worker::DenseParameter> parameters = block->Parameters();
      for (size_t p = 0; p < parameters.size(); ++p) {
        const worker::ParameterSpec& spec = parameters[p].spec;
        if (step > 1 || !expected["gradients"].contains(spec.name)) continue;
        const std::vector<float> gradient = ValuesOf(*block, p, worker::DensePart::kGradient);
        EXPECT_LT(Distance(gradient, expected["gradients"][spec.name]), 1e-4) << name << ": " << spec.name;
        if (spec.copy_of < 0) ++compared;
      }
    }
    for (const Table& table : blocks.tables) {
      if (step > 1) continue;
      EXPECT_LT(Distance(table.gradient, expected["gradients"][table.spec.name]), 1e-4) << table.spec.name;
      ++compared;
    }
    EXPECT_EQ(compared, step == 1 ? expected["gradients"].size() : 0) << name;
    for (auto& block : blocks) ASSERT_TRUE(block->ApplyUpdate(Sgd()).ok());
    UpdateTables(blocks);
    for (auto& block : blocks) {
      const std::vector<worker::DenseParameter> parameters = block->Parameters();
      for (size_t p = 0; p < parameters.size(); ++p) {
        const worker::ParameterSpec& spec = parameters[p].spec;
        if (step > 1 || !expected["buffers"].contains(spec.name)) continue;
        const std::vector<float> weights = ValuesOf(*block, p, worker::DensePart::kWeights);
        EXPECT_LT(Distance(weights, expected["buffers"][spec.name]), 1e-5) << spec.name;
      }
    }
  }
}

TEST_P(ExportedModelTest, TrainsAsPyTorchDoes) {
  const auto [where, name] = GetParam();
  if (NeedsGpu(where)) MEDLEY_NEEDS_GPU();
  ExpectAsPyTorch(name, where, {.depth = 2}, {});
}

TEST_P(ExportedModelTest, TrainsTheSameWhereverItIsDivided) {
  const Where where = std::get<0>(GetParam());
  const std::string name = std::get<1>(GetParam());
  if (NeedsGpu(where)) MEDLEY_NEEDS_GPU();
  const Sample sample = SampleOf(name, Expected(name));
  for (const model::CutSpec& cut :
       {model::CutSpec{.depth = 1}, model::CutSpec{.depth = 3}, model::CutSpec{.finest = true}}) {
    const Graph graph = GraphOf(name, sample, cut);
    const int count = static_cast<int>(graph.operations.size());
    std::vector<int> everywhere;
    for (int c = 1; c < count; ++c) everywhere.push_back(c);
    SCOPED_TRACE(::testing::Message() << name << " has " << count << " operations");
    ExpectAsPyTorch(name, where, cut, everywhere);
    ExpectAsPyTorch(name, where, cut, {count / 2});
  }
}

std::string CaseName(const ::testing::TestParamInfo<std::tuple<Where, const char*>>& info) {
  std::string name = NameOf(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
  std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Models, ExportedModelTest,
    ::testing::Combine(::testing::Values(Where::kHost),
                       ::testing::Values("mlp", "conv", "tied", "transformer", "two-inputs", "numbers", "sparse",
                                         "mlp-2.7", "conv-2.7", "conv-2.8", "conv-eval", "tied-2.8", "mlp-2.9",
                                         "mlp-scripted", "mlp-traced", "conv-scripted", "conv-traced", "tied-scripted",
                                         "tied-traced", "transformer-scripted", "transformer-traced",
                                         "two-inputs-scripted", "two-inputs-traced", "lstm-scripted", "gru-scripted",
                                         "containers-scripted")),
    CaseName);
INSTANTIATE_TEST_SUITE_P(Places, ExportedModelTest,
                         ::testing::Combine(::testing::Values(Where::kDevice),
                                            ::testing::Values("mlp", "conv", "tied", "transformer", "two-inputs",
                                                              "numbers", "sparse")),
                         CaseName);

class AtenBlockTest : public ::testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    if (NeedsGpu(GetParam())) MEDLEY_NEEDS_GPU();
  }
};

INSTANTIATE_TEST_SUITE_P(Places, AtenBlockTest, ::testing::Values(Where::kHost, Where::kDevice),
                         [](const auto& tested) { return NameOf(tested.param); });

TEST_P(AtenBlockTest, MicroBatchesAddUpToTheBatch) {
  for (const std::string name : {"mlp", "transformer", "two-inputs", "sparse"}) {
    const nlohmann::json expected = Expected(name);
    const Sample sample = SampleOf(name, expected);
    Blocks blocks = BlocksOf(GraphOf(name, sample), {1}, GetParam());
    for (int step = 1; step <= 5; ++step) {
      const double loss = Step(blocks, sample.batch, step, 3);
      EXPECT_NEAR(loss, expected["losses"][static_cast<size_t>(step) - 1].get<double>(), 2e-5) << name;
    }
  }
}

// For dropout: the same masks wherever the model and the batch are divided, others in the next step.
TEST_P(AtenBlockTest, DropoutDoesNotDependOnThePlacement) {
  const Sample sample = SampleOf("conv", Expected("conv"));
  const auto losses = [&](const std::vector<int>& cuts, bool finest) {
    Blocks blocks = BlocksOf(GraphOf("dropout", sample, {.depth = 1, .finest = finest}), cuts, GetParam());
    std::vector<double> all;
    for (int step = 1; step <= 4; ++step) {
      // Batch norm sees the whole batch, so it is in one micro-batch.
      all.push_back(Step(blocks, sample.batch, step, 1));
    }
    return all;
  };
  const std::vector<double> one = losses({}, false);
  EXPECT_NE(one[0], Expected("conv")["losses"][0].get<double>()) << "nothing was dropped";
  for (const auto& other : {losses({1}, false), losses({2}, false), losses({1, 2, 3}, true)}) {
    EXPECT_THAT(other, ::testing::Pointwise(::testing::DoubleNear(1e-5), one));
  }
}

TEST_P(AtenBlockTest, InferenceDropsNothingAndUsesTheRunningStatistics) {
  const Sample sample = SampleOf("conv", Expected("conv"));
  const Graph graph = GraphOf("dropout", sample), plain = GraphOf("conv", sample);
  Blocks dropping = BlocksOf(graph, {}, GetParam());
  const auto logits = [&](AtenBlock& block, const BatchView& view) {
    const auto out = block.Infer(view, {});
    EXPECT_TRUE(out.ok()) << out.status();
    return std::vector<float>(out->front().begin(), out->front().end());
  };
  const std::vector<float> all = logits(*dropping.front(), sample.batch.View(0, 6));
  const std::vector<float> first = logits(*dropping.front(), sample.batch.View(0, 1));
  EXPECT_THAT(first,
              ::testing::Pointwise(::testing::FloatNear(1e-5F), std::vector<float>(all.begin(), all.begin() + 5)))
      << "a sample does not depend on the others";
  EXPECT_EQ(logits(*dropping.front(), sample.batch.View(0, 6)), all);
}

TEST_P(AtenBlockTest, UndoneUpdatesAreForgotten) {
  const Sample sample = SampleOf("mlp", Expected("mlp"));
  Blocks blocks = BlocksOf(GraphOf("mlp", sample), {1}, GetParam());
  const double first = Step(blocks, sample.batch, 1, 1);
  const double second = Step(blocks, sample.batch, 2, 1);
  EXPECT_LT(second, first);
  for (auto& block : blocks) ASSERT_TRUE(block->UndoTo(1).ok());
  EXPECT_EQ(Step(blocks, sample.batch, 2, 1), second);
}

// A trainer that starts when all steps are done evaluates before its first one.
TEST(BlockWithATableTest, EvaluatesBeforeItsFirstStep) {
  const Sample sample = SampleOf("sparse", Expected("sparse"));
  Blocks blocks = BlocksOf(GraphOf("sparse", sample), {});
  Batch batch = sample.batch;
  for (const Table& table : blocks.tables) GiveRows(table, batch);
  const auto logits = blocks.front()->Infer(batch.View(0, batch.samples), {});
  ASSERT_TRUE(logits.ok()) << logits.status();
  EXPECT_EQ(logits->front().size(), 3u * static_cast<size_t>(batch.samples));
}

TEST(ExportedGraphTest, SaysWhatIsWrong) {
  const Sample sample = SampleOf("mlp", Expected("mlp"));
  const auto fails = [&](const std::string& name, const model::JobSpec& job) {
    auto program = exported::ReadArchive(Folder() + name + ".pt2");
    EXPECT_TRUE(program.ok()) << program.status();
    const auto graph = worker::ImportedGraph(job, std::make_shared<const exported::Program>(*std::move(program)));
    EXPECT_FALSE(graph.ok());
    return base::Message(graph.status());
  };
  EXPECT_THAT(fails("fixed", sample.job), ::testing::HasSubstr("dynamic_shapes"));
  model::JobSpec job = sample.job;
  job.model.cut.modules = {"fc3"};
  EXPECT_THAT(fails("mlp", job), ::testing::HasSubstr("no module 'fc3'; it has, among others, fc1, fc2"));
  job = sample.job;
  job.data.schema.numeric.pop_back();
  EXPECT_THAT(fails("mlp", job), ::testing::HasSubstr("has 0 integers and 3 floats, but the model takes 0 and 4"));
  job = sample.job;
  job.data.schema.label_classes.push_back("more");
  EXPECT_THAT(fails("mlp", job), ::testing::HasSubstr("3 outputs a sample"));
  job = sample.job;
  job.model.output = "5";
  EXPECT_THAT(fails("mlp", job), ::testing::HasSubstr("no output '5'"));
}

}  // namespace
}  // namespace medley::worker::aten
