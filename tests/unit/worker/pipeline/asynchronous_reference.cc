#include "tests/unit/worker/pipeline/asynchronous_reference.h"

#include <algorithm>
#include <memory>

#include "tests/unit/worker/pipeline/pipeline_harness.h"
#include "worker/data/block_order.h"
#include "worker/model/block_model.h"
#include "worker/params/initialize.h"
#include "worker/pipeline/batch_assembler.h"

namespace medley::worker::testing {
namespace {

using Floats = std::vector<float>;

// The parameters of the whole model, dense ones and tables, after every step.
class History {
 public:
  History(const Graph& graph, const Optimizer& optimizer, uint64_t seed) : optimizer_(optimizer) {
    std::vector<Floats> weights;
    for (const bool sparse : {false, true}) {
      for (const ParameterSpec& spec : graph.Parameters(sparse)) {
        specs_.push_back(spec);
        Initialize(spec, seed, weights.emplace_back(static_cast<size_t>(spec.Size())));
        state_.emplace_back(weights.back().size() * StateFloats(optimizer.kind), optimizer.initial_state);
      }
    }
    versions_.push_back(std::move(weights));
  }

  size_t IndexOf(const ParameterSpec& spec) const {
    const auto found = std::ranges::find_if(specs_, [&](const ParameterSpec& other) {
      return other.operation == spec.operation && other.name == spec.name && other.sparse == spec.sparse;
    });
    return static_cast<size_t>(found - specs_.begin());
  }
  const Floats& At(int64_t version, size_t parameter) const {
    return versions_[static_cast<size_t>(version)][parameter];
  }
  void BeginStep() { versions_.push_back(versions_.back()); }
  // Changes the newest version: floats from `first`, by `gradient`.
  void Change(size_t parameter, size_t first, std::span<const float> gradient) {
    const size_t state = StateFloats(optimizer_.kind);
    Apply(optimizer_.AtStep(std::ssize(versions_) - 1),
          std::span(versions_.back()[parameter]).subspan(first, gradient.size()),
          std::span(state_[parameter]).subspan(first * state, gradient.size() * state), gradient);
  }

 private:
  const Optimizer optimizer_;
  std::vector<ParameterSpec> specs_;
  std::vector<std::vector<Floats>> versions_;  // by step, then parameter
  std::vector<Floats> state_;                  // of the optimizer, newest
};

class ReferenceStage {
 public:
  ReferenceStage(const Graph& graph, model::OperationRange range, const Optimizer& optimizer, uint64_t seed)
      : block_(*BlockModel::Create(graph, range, optimizer, seed)) {}

  // The outputs for a whole batch, with the parameters of `version`.
  Values Forward(const History& history, const PreparedStep& data, int64_t version, Values inputs) {
    const int64_t step = data.lease.step;
    block_->SetAppliedStep(step - 1);
    for (const DenseParameter& parameter : block_->Parameters()) {
      std::ranges::copy(history.At(version, history.IndexOf(parameter.spec)), parameter.weights.begin());
    }
    block_->BeginStep({.step = step, .version = step - 1, .global_samples = data.lease.count});
    for (size_t t = 0; t < block_->Tables().size(); ++t) {
      const ParameterSpec& spec = block_->Tables()[t];
      const Floats& table = history.At(version, history.IndexOf(spec));
      Floats rows;
      for (const uint64_t key : KeysOf(data, spec)) {
        const auto row = table.begin() + static_cast<std::ptrdiff_t>(key) * spec.columns;
        rows.insert(rows.end(), row, row + spec.columns);
      }
      block_->SetRows(0, static_cast<int>(t), rows);
    }
    return *block_->Forward({0, 0}, data.batch.View(0, data.lease.count), inputs);
  }

  Values Backward(History& history, const PreparedStep& data, Values output_gradients) {
    const Values gradients = *block_->Backward({0, 0}, output_gradients);
    block_->Gradients();
    for (const DenseParameter& parameter : block_->Parameters()) {
      history.Change(history.IndexOf(parameter.spec), 0, parameter.gradient);
    }
    for (size_t t = 0; t < block_->Tables().size(); ++t) {
      const ParameterSpec& spec = block_->Tables()[t];
      const auto columns = static_cast<size_t>(spec.columns);
      const std::vector<uint64_t>& keys = KeysOf(data, spec);
      for (size_t k = 0; k < keys.size(); ++k) {
        history.Change(history.IndexOf(spec), keys[k] * columns,
                       block_->RowGradients(0, static_cast<int>(t)).subspan(k * columns, columns));
      }
    }
    return gradients;
  }
  double LossSum() const { return block_->LossSum(0); }

 private:
  static const std::vector<uint64_t>& KeysOf(const PreparedStep& data, const ParameterSpec& table) {
    return std::ranges::find(data.tables, table.operation, &TableKeys::operation)->keys;
  }

  const std::unique_ptr<BlockModel> block_;
};

int64_t LagOf(const ReferencePipeline& pipeline, int stage) {
  if (pipeline.synchronous) return 1;
  const int after = static_cast<int>(pipeline.stages.size()) - stage - 1, micros = pipeline.micro_batches;
  const int lag = 1 + (after + micros - 1) / micros;
  return pipeline.max_staleness > 0 ? std::min(lag, pipeline.max_staleness + 1) : lag;
}

}  // namespace

std::vector<double> ReferenceLosses(const model::JobSpec& job, const Dataset& data, const ReferenceRun& run,
                                    int64_t steps) {
  const Graph graph = *BuildGraph(job);
  const Optimizer optimizer = *MakeOptimizer(job.training.optimizer, job.training.learning_rate);
  std::vector<SeatTable> tables;
  for (const ParameterSpec& spec : graph.Parameters(true)) tables.push_back({spec});
  BatchAssembler assembler(1, {.seed = job.training.seed, .blocks = BlockOrderOf(job.data, data.rows())}, data,
                           std::move(tables));
  History history(graph, optimizer, job.training.seed);
  std::vector<std::unique_ptr<ReferenceStage>> stages;
  const ReferencePipeline* pipeline = nullptr;
  std::vector<double> losses;
  PreparedStep batch;
  int64_t drained = 0;
  for (const StepLease& lease : Leases(job, data.rows())) {
    if (lease.step > steps) break;
    if (const auto next = run.pipelines.find(lease.step); next != run.pipelines.end()) {
      pipeline = &next->second;
      drained = lease.step - 1;
      stages.clear();
      for (const model::OperationRange& range : pipeline->stages) {
        stages.push_back(std::make_unique<ReferenceStage>(graph, range, optimizer, job.training.seed));
      }
    }
    if (!assembler.Assemble(lease, {}, batch).ok()) break;
    std::vector<std::span<const float>> values;
    for (size_t i = 0; i < stages.size(); ++i) {
      const int64_t version = std::max(drained, lease.step - LagOf(*pipeline, static_cast<int>(i)));
      const Values outputs = stages[i]->Forward(history, batch, version, values);
      values.assign(outputs.begin(), outputs.end());
    }
    losses.push_back(stages.back()->LossSum() / lease.count);
    history.BeginStep();
    values.clear();
    for (size_t i = stages.size(); i-- > 0;) {
      const Values gradients = stages[i]->Backward(history, batch, values);
      values.assign(gradients.begin(), gradients.end());
    }
    if (run.drains.contains(lease.step)) drained = lease.step;
  }
  return losses;
}

}  // namespace medley::worker::testing
