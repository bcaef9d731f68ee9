#include "worker/model/block_model.h"

#include <algorithm>
#include <exception>

#include "common/base/status.h"
#include "common/model/operation_range.h"
#include "worker/model/block_rep.h"
#include "worker/model/losses.h"
#include "worker/model/random.h"

namespace medley::worker {
namespace {

// The dense parameters of `operations`, in order.
std::vector<ParameterSpec> DenseSpecs(std::span<const Operation> operations) {
  std::vector<ParameterSpec> specs;
  for (const Operation& operation : operations) {
    for (const ParameterSpec& spec : operation.parameters) {
      if (!spec.sparse) specs.push_back(spec);
    }
  }
  return specs;
}

// Sets the first `outputs` rows of the weights to the identity.
void PassFirst(std::span<float> weights, size_t outputs) {
  std::ranges::fill(weights.first(outputs * outputs), 0.0F);
  for (size_t i = 0; i < outputs; ++i) weights[i * outputs + i] = 1;
}

}  // namespace

BlockModel::Rep::Rep(const Graph& graph, model::OperationRange range, const Optimizer& optimizer, uint64_t seed,
                     std::shared_ptr<ComputeThreads> threads, int kept_updates)
    : threads_(threads != nullptr ? std::move(threads) : std::make_shared<ComputeThreads>(1)),
      shape_(graph.shape),
      operations_(graph.operations.begin() + range.first, graph.operations.begin() + range.end),
      first_(range.first),
      seed_(seed),
      block_(ShapeOfBlock(graph, range)),
      dense_(DenseSpecs(operations_), optimizer, seed, kept_updates) {
  size_t next = 0;
  for (const Operation& operation : operations_) {
    first_dense_.push_back(next);
    table_of_.push_back(tables_.size());
    for (const ParameterSpec& spec : operation.parameters) {
      if (spec.sparse) {
        tables_.push_back(spec);
      } else {
        ++next;
      }
    }
  }
  KeepFixedRows();
  Open(0);
  infer_.outputs.resize(operations_.size());
  infer_.kept.resize(operations_.size());
  touched_.resize(operations_.size());
}

void BlockModel::Rep::BeginStep(const StepShape& shape) {
  OpenStep& open = Open(shape.slot);
  open.step = shape.step;
  open.version = shape.version;
  open.scale = 1.0F / static_cast<float>(std::max(1, shape.global_samples));
  while (open.micro_batches.size() < static_cast<size_t>(shape.micro_batches)) {
    MicroBatchState& batch = open.micro_batches.emplace_back();
    batch.slot = shape.slot;
    batch.outputs.resize(operations_.size());
    batch.kept.resize(operations_.size());
  }
  open.loss_sum = 0;
  open.loss_samples = 0;
  if (shape.step <= gradient_step_) gradient_step_ = kNoStep;  // it is repeated, after a rollback
}

void BlockModel::Rep::SetRows(int slot, int table, std::span<const float> values) {
  TableRows& to = open_.at(static_cast<size_t>(slot)).rows.at(static_cast<size_t>(table));
  to.floats = values.size();
  to.rows.Grow(to.floats);
  to.gradients.Grow(to.floats);
  std::ranges::copy(values, to.rows.data());
  std::ranges::fill(to.gradients.First(to.floats), 0.0F);
}

void BlockModel::Rep::Update(const Optimizer& optimizer) {
  Gradients();
  dense_.ApplyUpdate(optimizer);
  KeepFixedRows();
}

std::span<float> BlockModel::Rep::Gradients() {
  for (size_t i = 0; i < operations_.size(); ++i) {
    if (touched_[i] || !HasWeights(operations_[i])) continue;
    std::ranges::fill(dense_.Gradient(first_dense_[i]), 0.0F);
    std::ranges::fill(dense_.Gradient(first_dense_[i] + 1), 0.0F);
    touched_[i] = true;
  }
  return dense_.Gradients();
}

void BlockModel::Rep::KeepFixedRows() {
  for (size_t i = 0; i < operations_.size(); ++i) {
    if (operations_[i].pass_first) {
      PassFirst(dense_.Weights(first_dense_[i]), static_cast<size_t>(operations_[i].output_width));
    }
  }
}

absl::Status BlockModel::Rep::CheckSizes(const BatchView& features, Values inputs) const {
  MEDLEY_RETURN_IF_ERROR(CheckBatch(shape_, features));
  return CheckBlockValues("input", block_.inputs, inputs, features.samples);
}

std::span<const float> BlockModel::Rep::FloatsOf(const MicroBatchState& batch, size_t index, size_t k) const {
  const Matrix input = InputOf(batch, index, k);
  return {input.data, static_cast<size_t>(input.rows * input.columns)};
}

Matrix BlockModel::Rep::InputOf(const MicroBatchState& batch, size_t index, size_t k) const {
  const Operation& operation = operations_[index];
  const int64_t samples = batch.features.samples;
  if (operation.inputs.empty()) return {batch.features.numerics.data(), samples, shape_.numerics};
  const Source& source = block_.sources[index][k];
  if (source.inside) return {batch.outputs[source.index].data(), samples, operations_[source.index].output_width};
  return {batch.inputs[source.index], samples, block_.inputs[source.index].width};
}

std::span<const LayerInput> BlockModel::Rep::LayerInputs(const MicroBatchState& batch, size_t index) {
  layer_inputs_.clear();
  for (size_t k = 0; k < block_.sources[index].size(); ++k) {
    const Matrix input = InputOf(batch, index, k);
    layer_inputs_.push_back({input.data, input.columns, input.columns});
  }
  return layer_inputs_;
}

void BlockModel::Rep::RunCross(MicroBatchState& batch, size_t index, int64_t version, MutableMatrix out) {
  const size_t floats = static_cast<size_t>(out.rows * out.columns);
  const size_t last = block_.sources[index].size() - 1;
  batch.kept[index].Grow(floats);
  const std::span<float> product = batch.kept[index].First(floats), y{out.data, floats};
  LinearForward(InputOf(batch, index, last), Weights(version, index),
                dense_.WeightsOf(version, first_dense_[index] + 1), Activation::kNone,
                {product.data(), out.rows, out.columns}, *threads_);
  Multiply(FloatsOf(batch, index, 0), product, y);
  Add(y, FloatsOf(batch, index, last), y);
}

void BlockModel::Rep::Embed(const MicroBatchState& batch, size_t index, MutableMatrix out) {
  const TableRows& rows = step(batch.slot).rows[table_of_[index]];
  const int64_t columns = tables_[table_of_[index]].columns;
  EmbeddingForward(IdsOf(batch, index), batch.features.numerics,
                   {rows.rows.data(), static_cast<int64_t>(rows.floats) / columns, columns},
                   operations_[index].sum_fields, out);
}

void BlockModel::Rep::Drop(const MicroBatchState& batch, size_t index, MutableMatrix values) {
  constexpr int64_t kWork = 16;  // of a value, as arithmetic of the layers
  const double keep = 1 - operations_[index].dropout;
  const Draw draw{
      .seed = seed_, .call = first_ + static_cast<int32_t>(index), .step = step(batch.slot).step, .sample = 0};
  threads_->ForEach(values.rows, kWork * values.columns, [&](int64_t first, int64_t end) {
    Draw of_row = draw;
    for (int64_t row = first; row < end; ++row) {
      of_row.sample = batch.first_sample + row;
      DropOut(of_row, keep, {values.data + row * values.columns, static_cast<size_t>(values.columns)});
    }
  });
}

Values BlockModel::Rep::Run(MicroBatchState& batch, const BatchView& features, Values inputs, bool training) {
  batch.features = features;
  batch.inputs.clear();
  for (const std::span<const float>& input : inputs) batch.inputs.push_back(input.data());
  batch.returned.assign(block_.outputs.size(), {});
  OpenStep& open = open_[static_cast<size_t>(batch.slot)];
  const int64_t version = training ? open.version : dense_.applied_step();
  const size_t samples = static_cast<size_t>(features.samples);
  for (size_t i = 0; i < operations_.size() && samples > 0; ++i) {
    const Operation& operation = operations_[i];
    const bool loss = operation.kind == OperationKind::kLoss;
    const size_t width = static_cast<size_t>(loss ? operation.input_width : operation.output_width);
    batch.outputs[i].Grow(samples * width);
    const MutableMatrix out{batch.outputs[i].data(), features.samples, static_cast<int64_t>(width)};
    switch (operation.kind) {
      case OperationKind::kEmbedding:
        Embed(batch, i, out);
        break;
      case OperationKind::kFullyConnected:
        LinearForward(InputOf(batch, i), Weights(version, i), dense_.WeightsOf(version, first_dense_[i] + 1),
                      operation.activation, out, *threads_);
        break;
      case OperationKind::kCross:
        RunCross(batch, i, version, out);
        break;
      case OperationKind::kNumerics:
        std::ranges::copy(features.numerics, out.data);
        break;
      case OperationKind::kLoss:
        if (!training) break;
        open.loss_sum += LossGradient(operation, InputOf(batch, i), features.labels, open.scale, out, features.weights);
        open.loss_samples += features.samples;
        break;
      case OperationKind::kImported:
        break;  // Create has refused it
      default: {
        const std::span<const LayerInput> from = LayerInputs(batch, i);
        threads_->ForEach(out.rows, static_cast<int64_t>(VectorLayerFlops(operation)), [&](int64_t first, int64_t end) {
          VectorLayerForward(operation, from, first, end, out.data);
        });
      }
    }
    if (training && operation.dropout > 0) {
      if (KeepsUndropped(operation)) {
        batch.kept[i].Grow(samples * width);
        std::ranges::copy(batch.outputs[i].First(samples * width), batch.kept[i].data());
      }
      Drop(batch, i, out);
    }
  }
  if (samples == 0) return batch.returned;
  for (size_t k = 0; k < block_.outputs.size(); ++k) {
    const BlockValue& output = block_.outputs[k];
    batch.returned[k] = batch.outputs[static_cast<size_t>(output.operation - first_)].First(
        samples * static_cast<size_t>(output.width));
  }
  if (IsLast() && !training) batch.returned = {Logits(batch)};
  return batch.returned;
}

std::span<const float> BlockModel::Rep::Logits(MicroBatchState& batch) const {
  const std::span<const float> all = FloatsOf(batch, operations_.size() - 1, 0);
  const auto width = static_cast<size_t>(operations_.back().input_width);
  if (operations_.back().negatives == 0) return all;
  batch.logits.clear();
  for (size_t at = 0; at < all.size(); at += width) batch.logits.push_back(all[at]);
  return batch.logits;
}

BlockModel::BlockModel(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
BlockModel::~BlockModel() = default;

absl::StatusOr<std::unique_ptr<BlockModel>> BlockModel::Create(const Graph& graph, model::OperationRange range,
                                                               const Optimizer& optimizer, uint64_t seed,
                                                               std::shared_ptr<ComputeThreads> threads,
                                                               int kept_updates) {
  const int count = static_cast<int>(graph.operations.size());
  if (range.first < 0 || range.first >= range.end || range.end > count) {
    return base::InvalidArgument("a stage cannot have operations [{}, {}): the model has {}", range.first, range.end,
                                 count);
  }
  if (graph.imported != nullptr) return base::Internal("BlockModel computes no exported models");
  return std::unique_ptr<BlockModel>(
      new BlockModel(std::make_unique<Rep>(graph, range, optimizer, seed, std::move(threads), kept_updates)));
}

const std::vector<BlockValue>& BlockModel::Inputs() const { return rep_->block().inputs; }
const std::vector<BlockValue>& BlockModel::Outputs() const { return rep_->block().outputs; }
bool BlockModel::IsLast() const { return rep_->IsLast(); }
const std::vector<ParameterSpec>& BlockModel::Tables() const { return rep_->tables(); }
void BlockModel::BeginStep(const StepShape& shape) { rep_->BeginStep(shape); }
void BlockModel::SetRows(int slot, int table, std::span<const float> rows) { rep_->SetRows(slot, table, rows); }

absl::StatusOr<Values> BlockModel::Forward(Pass pass, const BatchView& features, Values inputs) try {
  MEDLEY_RETURN_IF_ERROR(rep_->CheckSizes(features, inputs));
  MicroBatchState& batch = rep_->micro_batch(pass);
  batch.first_sample = pass.first_sample;
  return rep_->Run(batch, features, inputs, /*training=*/true);
} catch (const std::exception& error) {
  return base::Internal("forward pass of micro-batch {}: {}", pass.micro, error.what());
}

absl::StatusOr<Values> BlockModel::Backward(Pass pass, Values output_gradients) try {
  return rep_->Back(pass, output_gradients);
} catch (const std::exception& error) {
  return base::Internal("backward pass of micro-batch {}: {}", pass.micro, error.what());
}

absl::StatusOr<Values> BlockModel::Infer(const BatchView& features, Values inputs) try {
  MEDLEY_RETURN_IF_ERROR(rep_->CheckSizes(features, inputs));
  return rep_->Run(rep_->inference(), features, inputs, /*training=*/false);
} catch (const std::exception& error) {
  return base::Internal("inference: {}", error.what());
}

std::span<const float> BlockModel::RowGradients(int slot, int table) const { return rep_->RowGradients(slot, table); }
std::span<float> BlockModel::Gradients() { return rep_->Gradients(); }
std::vector<DenseParameter> BlockModel::Parameters() { return rep_->dense().Parameters(); }
double BlockModel::LossSum(int slot) const { return rep_->step(slot).loss_sum; }
int64_t BlockModel::LossSamples(int slot) const { return rep_->step(slot).loss_samples; }

absl::Status BlockModel::ApplyUpdate(const Optimizer& optimizer) {
  rep_->Update(optimizer);
  return absl::OkStatus();
}
absl::Status BlockModel::KeepAgreed() {
  rep_->dense().KeepAgreed();
  return absl::OkStatus();
}
void BlockModel::ForgetAgreed() { rep_->dense().ForgetAgreed(); }
int64_t BlockModel::AgreedStep() const { return rep_->dense().agreed_step(); }
int64_t BlockModel::AppliedStep() const { return rep_->dense().applied_step(); }
int64_t BlockModel::UndoLimit() const { return rep_->dense().undo_limit(); }
absl::Status BlockModel::UndoTo(int64_t step) { return rep_->dense().UndoTo(step); }
void BlockModel::SetAppliedStep(int64_t step) { rep_->dense().SetAppliedStep(step); }

}  // namespace medley::worker
