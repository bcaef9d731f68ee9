// Measures samples per second of one trainer process on generated data like Criteo's: the executor with tables in the
// process, and the layers alone. The arguments are samples per batch and threads (the CPUs of a unit). items_per_second
// is by wall-clock time; CPU time is reported as well. BM_Interpreter measures what the executor itself costs in a
// step: its blocks compute nothing.
//
//   model_bench [--device cpu|cuda] [--benchmark_...]
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "common/model/job_spec.h"
#include "common/model/model.h"
#include "common/program/compile.h"
#include "tests/bench/criteo_shape.h"
#include "worker/model/block_model.h"
#include "worker/model/graph.h"
#include "worker/pipeline/executor.h"
#include "worker/pipeline/local_tables.h"

namespace medley::worker {
namespace {

constexpr int64_t kEmbeddingRows = 1000001;

model::JobSpec CriteoJob(int batch) {
  model::JobSpec job;
  job.model.name = "ctrdnn";
  job.model.embedding_dim = 10;
  job.model.embedding_rows = kEmbeddingRows;
  job.model.hidden = {400, 400, 400};
  job.data.train = {"file:///generated", "csv"};
  job.data.schema.label_column = 0;
  for (int i = 0; i < 13; ++i) job.data.schema.numeric.push_back(1 + i);
  for (int i = 0; i < 26; ++i) job.data.schema.categorical.push_back(14 + i);
  job.training.batch_size = batch;
  return job;
}

model::ModelSpec TwoEmbeddings(int64_t rows) {
  const auto spec = model::ParseJobSpec(fmt::format(R"({{"model": {{"parameters": {{"embeddingRows": {}}}, "layers": [
    {{"name": "user", "kind": "Embedding", "out": 16, "fields": 13, "numerics": false}},
    {{"name": "item", "kind": "Embedding", "out": 16, "first": 13, "numerics": false}},
    {{"name": "user_sum", "kind": "Pool", "inputs": ["user"], "dim": 16}},
    {{"name": "item_sum", "kind": "Pool", "inputs": ["item"], "dim": 16}},
    {{"name": "joined", "kind": "Concat", "inputs": ["user_sum", "item_sum"]}},
    {{"name": "fc1", "kind": "FullyConnected", "out": 256, "activation": "relu"}},
    {{"name": "fc2", "kind": "FullyConnected", "out": 128, "activation": "relu"}},
    {{"name": "fc3", "kind": "FullyConnected", "out": 64, "activation": "relu"}},
    {{"name": "out", "kind": "FullyConnected", "out": 1}}, {{"name": "loss", "kind": "Loss"}}]}},
    "data": {{"train": {{"uri": "file:///generated", "format": "csv"}}, "schema": {{"label": {{"column": 0}}}}}},
    "training": {{"optimizer": {{"name": "adagrad"}}}}}})",
                                                    rows));
  MEDLEY_CHECK(spec.ok(), base::Message(spec.status()));
  return spec->model;
}

std::shared_ptr<ComputeThreads> ThreadsOf(const benchmark::State& state) {
  return std::make_shared<ComputeThreads>(static_cast<int>(state.range(1)));
}

// Whole steps of one trainer without servers, on 64 batches in turn.
void TrainSteps(benchmark::State& state, const model::JobSpec& job, const Dataset& data) {
  const int batch = job.training.batch_size;
  const Graph graph = *BuildGraph(job);
  const Optimizer optimizer = *MakeOptimizer("adagrad", 0.05);
  const std::unique_ptr<BlockModel> model =
      *BlockModel::Create(graph, {0, static_cast<int>(graph.operations.size())}, optimizer, 1, ThreadsOf(state));
  LocalTables tables(graph.Parameters(/*sparse=*/true), optimizer, 1);
  base::SystemClock clock;
  model::ExecutionPlan plan;  // one stage of one unit
  plan.stages = {{.operations = {{0, static_cast<int>(graph.operations.size())}}, .groups = {{"cpu", 1, 1}}}};
  const Programs programs{*program::Compile(plan, graph.ToModel()), *program::CompileEvaluation(plan, graph.ToModel())};
  ExecutorParts parts{.blocks = {model.get()}, .data = &data, .sparse = &tables, .clock = &clock};
  const std::unique_ptr<Executor> executor = *Executor::Create(programs, 0, parts, optimizer, 1);
  const auto lease = [&](int64_t step) { return StepLease{step, (step - 1) / 64, (step - 1) % 64 * batch, batch}; };
  int64_t step = 0;
  double loss = 0;
  for (auto _ : state) {
    ++step;
    executor->Prefetch(lease(step));
    executor->Prefetch(lease(step + 1));
    const absl::StatusOr<std::optional<StepResult>> result = executor->RunStep(lease(step), {});
    if (!result.ok()) {
      state.SkipWithError(base::ToString(result.status()).c_str());
      break;
    }
    loss = (*result)->loss_sum / batch;
  }
  state.SetItemsProcessed(state.iterations() * batch);
  state.counters["loss"] = loss;
}

void BM_TrainStep(benchmark::State& state) {
  const int batch = static_cast<int>(state.range(0));
  TrainSteps(state, CriteoJob(batch), *CriteoShape(64 * batch, kEmbeddingRows, 1));
}
BENCHMARK(BM_TrainStep)->ArgsProduct({{512, 1000}, {1, 2}})->MeasureProcessCPUTime()->UseRealTime()->MinTime(5);

// 2EMB of HeterPS (examples/zoo/2emb.yaml) with 16 floats a row and ten million rows in all. `touches`: rows that
// samples use, in a second of processor time; each is read, gets a gradient and is updated. The third argument is 1 for
// rows that are equally likely, and 0 for those of Criteo-like fields, of which some are far more likely.
void BM_TwoEmbeddings(benchmark::State& state) {
  constexpr int64_t kRowsOfTable = 5'000'000;
  const int batch = static_cast<int>(state.range(0));
  model::JobSpec job = CriteoJob(batch);
  job.model = TwoEmbeddings(kRowsOfTable);
  job.data.schema.numeric.clear();
  Batch rows = CriteoShape(64 * batch, kRowsOfTable, 1)->all();
  rows.shape.numerics = 0;
  rows.numerics.clear();
  base::Rng rng(2);
  if (state.range(2) == 1) {
    for (int32_t& id : rows.ids) id = static_cast<int32_t>(rng.Below(kRowsOfTable));
  }
  const int fields = rows.shape.fields;
  TrainSteps(state, job, *Dataset::FromBatch(std::move(rows)));
  state.counters["touches"] =
      benchmark::Counter(static_cast<double>(state.iterations() * batch * fields), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_TwoEmbeddings)->ArgsProduct({{512}, {1}, {0, 1}})->MeasureProcessCPUTime()->MinTime(5);

// A block of the model without its computation.
class IdleBlock final : public BlockCompute {
 public:
  explicit IdleBlock(const BlockModel& model) : model_(model), gradients_(1) {}
  const std::vector<BlockValue>& Inputs() const override { return model_.Inputs(); }
  const std::vector<BlockValue>& Outputs() const override { return model_.Outputs(); }
  bool IsLast() const override { return model_.IsLast(); }
  const std::vector<ParameterSpec>& Tables() const override { return model_.Tables(); }
  void BeginStep(const StepShape&) override {}
  void SetRows(int, int, std::span<const float>) override {}
  absl::StatusOr<Values> Forward(Pass, const BatchView&, Values) override { return Give(model_.Outputs().size()); }
  absl::StatusOr<Values> Backward(Pass, Values) override { return Give(model_.Inputs().size()); }
  absl::StatusOr<Values> Infer(const BatchView&, Values) override { return Give(model_.Outputs().size()); }
  std::span<const float> RowGradients(int, int) const override { return gradients_; }
  std::span<float> Gradients() override { return gradients_; }
  std::vector<DenseParameter> Parameters() override { return {}; }
  double LossSum(int) const override { return 0; }
  int64_t LossSamples(int) const override { return 0; }
  absl::Status ApplyUpdate(const Optimizer&) override { return ++step_, absl::OkStatus(); }
  absl::Status KeepAgreed() override { return absl::OkStatus(); }
  void ForgetAgreed() override {}
  int64_t AppliedStep() const override { return step_; }
  int64_t AgreedStep() const override { return step_; }
  int64_t UndoLimit() const override { return step_; }
  absl::Status UndoTo(int64_t) override { return absl::OkStatus(); }
  void SetAppliedStep(int64_t step) override { step_ = step; }

 private:
  Values Give(size_t count) {
    values_.assign(count, {});
    return values_;
  }
  const BlockModel& model_;
  std::vector<float> gradients_;
  std::vector<std::span<const float>> values_;
  int64_t step_ = 0;
};

class NoRows final : public SparseParameters {
 public:
  absl::Status Pull(int64_t, std::span<const TableKeys> tables, std::vector<std::vector<float>>& rows,
                    const WaitLimit&) override {
    rows.resize(tables.size());
    return absl::OkStatus();
  }
  absl::Status Push(int64_t, std::span<const TableKeys>, std::span<const std::span<const float>>, int64_t,
                    const WaitLimit&) override {
    return absl::OkStatus();
  }
};

// Every operation is a block: more instructions than a plan of one stage has without `bucket_bytes`. `own_us` is the
// time of the executor's thread in a step, without its wait for the batch.
void BM_Interpreter(benchmark::State& state) {
  const int batch = static_cast<int>(state.range(0));
  const Graph graph = *BuildGraph(CriteoJob(batch));
  const Optimizer optimizer = *MakeOptimizer("adagrad", 0.05);
  const std::shared_ptr<const Dataset> data = CriteoShape(64 * batch, kEmbeddingRows, 1);
  const auto operations = static_cast<int>(graph.operations.size());
  model::ExecutionPlan plan;
  plan.stages = {{.operations = {{0, operations}}, .groups = {{"cpu", 1, 1}}}};
  plan.schedule = {model::ScheduleKind::kSync1F1B, 1, 0, 1};
  const Programs programs{*program::Compile(plan, graph.ToModel()), *program::CompileEvaluation(plan, graph.ToModel())};
  std::vector<std::unique_ptr<BlockModel>> models;
  std::vector<std::unique_ptr<IdleBlock>> blocks;
  NoRows rows;
  base::SystemClock clock;
  ExecutorParts parts{.data = data.get(), .sparse = &rows, .clock = &clock};
  for (const program::Block& block : programs.training.blocks) {
    models.push_back(*BlockModel::Create(graph, block.operations, optimizer, 1));
    parts.blocks.push_back(blocks.emplace_back(std::make_unique<IdleBlock>(*models.back())).get());
  }
  const std::unique_ptr<Executor> executor = *Executor::Create(programs, 0, parts, optimizer, 1);
  const auto lease = [&](int64_t step) { return StepLease{step, (step - 1) / 64, (step - 1) % 64 * batch, batch}; };
  int64_t step = 0;
  double own = 0;
  for (auto _ : state) {
    ++step;
    executor->Prefetch(lease(step));
    executor->Prefetch(lease(step + 1));
    const absl::StatusOr<std::optional<StepResult>> result = executor->RunStep(lease(step), {});
    if (!result.ok()) {
      state.SkipWithError(base::ToString(result.status()).c_str());
      break;
    }
    own += (*result)->compute_seconds;
  }
  state.counters["instructions"] = static_cast<double>(programs.training.instructions.size());
  state.counters["own_us"] = 1e6 * own / static_cast<double>(std::max<int64_t>(1, step));
}
BENCHMARK(BM_Interpreter)->Arg(512)->UseRealTime();

// Forward pass, backward pass and update of the dense layers for one batch.
void BM_DenseLayers(benchmark::State& state) {
  const int batch = static_cast<int>(state.range(0));
  const Graph graph = *BuildGraph(CriteoJob(batch));
  const Optimizer optimizer = *MakeOptimizer("adagrad", 0.05);
  const std::shared_ptr<const Dataset> data = CriteoShape(batch, kEmbeddingRows, 1);
  const std::unique_ptr<BlockModel> model =
      *BlockModel::Create(graph, {1, static_cast<int>(graph.operations.size())}, optimizer, 1, ThreadsOf(state));
  const std::vector<float> floats(static_cast<size_t>(batch) * static_cast<size_t>(model->Inputs()[0].width), 0.01F);
  const std::span<const float> input(floats);
  int64_t step = 0;
  for (auto _ : state) {
    model->BeginStep({.step = step + 1, .version = step, .global_samples = batch});
    if (!model->Forward({0, 0}, data->view(), {&input, 1}).ok() || !model->Backward({0, 0}, {}).ok() ||
        !model->ApplyUpdate(optimizer).ok()) {
      state.SkipWithError("the step failed");
      break;
    }
    ++step;
  }
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(BM_DenseLayers)->ArgsProduct({{128, 512}, {1, 2}})->MeasureProcessCPUTime()->UseRealTime()->MinTime(2);

}  // namespace

// Takes --device out of the arguments. Returns false, after saying why, for one that cannot compute these models.
bool TakeDevice(int& argc, char** argv) {
  std::string_view device = "cpu";
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--device=")) {
      device = argument.substr(argument.find('=') + 1);
    } else if (argument == "--device") {
      device = i + 1 < argc ? argv[++i] : "";
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  if (device == "cpu") return true;
  std::fprintf(stderr, device == "cuda"
                           ? "model_bench: --device cuda: this measures the layers of CPUs; exported_bench trains "
                             "the same model on a GPU\n"
                           : "model_bench: --device must be cpu or cuda\n");
  return false;
}

}  // namespace medley::worker

int main(int argc, char** argv) {
  if (!medley::worker::TakeDevice(argc, argv)) return 2;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
