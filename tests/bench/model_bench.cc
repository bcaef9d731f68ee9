// Measures samples per second of one trainer process on generated data like Criteo's: the executor with tables in the
// process, and the layers alone. The arguments are samples per batch and threads (the CPUs of a unit). items_per_second
// is by wall-clock time; CPU time is reported as well.
#include <benchmark/benchmark.h>

#include "common/base/status.h"
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

std::shared_ptr<ComputeThreads> ThreadsOf(const benchmark::State& state) {
  return std::make_shared<ComputeThreads>(static_cast<int>(state.range(1)));
}

// A whole step of one trainer without servers.
void BM_TrainStep(benchmark::State& state) {
  const int batch = static_cast<int>(state.range(0));
  const Graph graph = *BuildGraph(CriteoJob(batch));
  const Optimizer optimizer = *MakeOptimizer("adagrad", 0.05);
  const std::shared_ptr<const Dataset> data = CriteoShape(64 * batch, kEmbeddingRows, 1);
  const std::unique_ptr<BlockModel> model =
      *BlockModel::Create(graph, {0, static_cast<int>(graph.operations.size())}, optimizer, 1, ThreadsOf(state));
  LocalTables tables(graph.Parameters(/*sparse=*/true), optimizer, 1);
  base::SystemClock clock;
  model::ExecutionPlan plan;  // one stage of one unit
  plan.stages = {{.operations = {{0, static_cast<int>(graph.operations.size())}}, .groups = {{"cpu", 1, 1}}}};
  const Programs programs{*program::Compile(plan, graph.ToModel()), *program::CompileEvaluation(plan, graph.ToModel())};
  ExecutorParts parts{.blocks = {model.get()}, .data = data.get(), .sparse = &tables, .clock = &clock};
  const std::unique_ptr<Executor> executor = *Executor::Create(programs, 0, parts, optimizer, 1);
  const auto lease = [&](int64_t step) { return StepLease{step, (step - 1) / 64, (step - 1) % 64 * batch, batch}; };
  int64_t step = 0;
  double loss = 0;
  for (auto _ : state) {
    ++step;
    executor->Prefetch(lease(step));
    executor->Prefetch(lease(step + 1));
    const absl::StatusOr<StepResult> result = executor->RunStep(lease(step), {});
    if (!result.ok()) {
      state.SkipWithError(base::ToString(result.status()).c_str());
      break;
    }
    loss = result->loss_sum / batch;
  }
  state.SetItemsProcessed(state.iterations() * batch);
  state.counters["loss"] = loss;
}
BENCHMARK(BM_TrainStep)->ArgsProduct({{512, 1000}, {1, 2}})->MeasureProcessCPUTime()->UseRealTime()->MinTime(5);

// Forward pass, backward pass and update of the dense layers for one batch.
void BM_DenseLayers(benchmark::State& state) {
  const int batch = static_cast<int>(state.range(0));
  const Graph graph = *BuildGraph(CriteoJob(batch));
  const Optimizer optimizer = *MakeOptimizer("adagrad", 0.05);
  const std::shared_ptr<const Dataset> data = CriteoShape(batch, kEmbeddingRows, 1);
  const std::unique_ptr<BlockModel> model =
      *BlockModel::Create(graph, {1, static_cast<int>(graph.operations.size())}, optimizer, 1, ThreadsOf(state));
  const std::vector<float> input(static_cast<size_t>(batch) * static_cast<size_t>(model->InputWidth()), 0.01F);
  int64_t step = 0;
  for (auto _ : state) {
    model->BeginStep({++step, 1, batch});
    if (!model->Forward(0, data->all().View(0, batch), input).ok() || !model->Backward(0, {}).ok() ||
        !model->ApplyUpdate(optimizer).ok()) {
      state.SkipWithError("the step failed");
      break;
    }
  }
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(BM_DenseLayers)->ArgsProduct({{128, 512}, {1, 2}})->MeasureProcessCPUTime()->UseRealTime()->MinTime(2);

}  // namespace
}  // namespace medley::worker
