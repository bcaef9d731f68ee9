#include "worker/model/block_model.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "common/base/status.h"
#include "common/model/operation_range.h"
#include "worker/model/aligned_floats.h"
#include "worker/model/block_shape.h"
#include "worker/model/dense_store.h"
#include "worker/model/gradient_sums.h"
#include "worker/model/kernels.h"
#include "worker/model/losses.h"
#include "worker/model/random.h"

namespace medley::worker {
namespace {

// The inputs and outputs of one micro-batch, kept from its forward to its backward pass.
struct MicroBatchState {
  int slot = 0;
  int64_t first_sample = 0;  // within the step's whole batch
  BatchView features;
  std::vector<const float*> inputs;              // of the block
  std::vector<AlignedFloats> outputs;            // one per operation; of the loss: the gradient of its input
  std::vector<AlignedFloats> undropped;          // one per operation, of those with KeepsUndropped
  std::vector<std::span<const float>> returned;  // of the block
};

// The rows of a table that a step uses.
struct TableRows {
  AlignedFloats rows;
  AlignedFloats gradients;
  size_t floats = 0;
};

// What a step that has begun and not ended needs.
struct OpenStep {
  int64_t step = 0;
  int64_t version = 0;  // of the dense parameters
  float scale = 1;
  std::vector<TableRows> rows;  // by table
  std::vector<MicroBatchState> micro_batches;
  double loss_sum = 0;
  int64_t loss_samples = 0;
};

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

// Whether the gradient of the activation needs the outputs as they were before dropout.
bool KeepsUndropped(const Operation& operation) {
  return operation.dropout > 0 &&
         (operation.activation == Activation::kSigmoid || operation.activation == Activation::kTanh);
}

absl::Status CheckValues(const char* what, const std::vector<BlockValue>& expected, Values values, int samples) {
  if (values.size() != expected.size()) {
    return base::InvalidArgument("the block needs {} values as {}, got {}", expected.size(), what, values.size());
  }
  for (size_t k = 0; k < values.size(); ++k) {
    const size_t floats = static_cast<size_t>(samples) * static_cast<size_t>(expected[k].width);
    if (values[k].size() == floats) continue;
    return base::InvalidArgument("the {} of {} samples for operation {} has {} floats, the block needs {} per sample",
                                 what, samples, expected[k].operation, values[k].size(), expected[k].width);
  }
  return absl::OkStatus();
}

}  // namespace

class BlockModel::Rep {
 public:
  Rep(const Graph& graph, model::OperationRange range, const Optimizer& optimizer, uint64_t seed,
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
    touched_.resize(operations_.size());
  }

  const BlockShape& block() const { return block_; }
  bool IsLast() const { return operations_.back().kind == OperationKind::kLoss; }

  void BeginStep(const StepShape& shape) {
    OpenStep& open = Open(shape.slot);
    open.step = shape.step;
    open.version = shape.version;
    open.scale = 1.0F / static_cast<float>(std::max(1, shape.global_samples));
    while (open.micro_batches.size() < static_cast<size_t>(shape.micro_batches)) {
      MicroBatchState& batch = open.micro_batches.emplace_back();
      batch.slot = shape.slot;
      batch.outputs.resize(operations_.size());
      batch.undropped.resize(operations_.size());
    }
    open.loss_sum = 0;
    open.loss_samples = 0;
    if (shape.step <= gradient_step_) gradient_step_ = kNoStep;  // it is repeated, after a rollback
  }

  void SetRows(int slot, int table, std::span<const float> values) {
    TableRows& to = open_.at(static_cast<size_t>(slot)).rows.at(static_cast<size_t>(table));
    to.floats = values.size();
    to.rows.Grow(to.floats);
    to.gradients.Grow(to.floats);
    std::ranges::copy(values, to.rows.data());
    std::ranges::fill(to.gradients.First(to.floats), 0.0F);
  }

  void Update(const Optimizer& optimizer) {
    Gradients();
    dense_.ApplyUpdate(optimizer);
    KeepFixedRows();
  }

  absl::Status CheckSizes(const BatchView& features, Values inputs) const;
  Values Run(MicroBatchState& batch, const BatchView& features, Values inputs, bool training);
  absl::StatusOr<Values> Back(Pass pass, Values output_gradients);

  std::span<const float> RowGradients(int slot, int table) const {
    const TableRows& rows = step(slot).rows.at(static_cast<size_t>(table));
    return rows.gradients.First(rows.floats);
  }
  // Zeroes the gradients of operations without samples in this step first: they still hold values of an earlier step.
  std::span<float> Gradients() {
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (touched_[i] || operations_[i].kind != OperationKind::kFullyConnected) continue;
      std::ranges::fill(dense_.Gradient(first_dense_[i]), 0.0F);
      std::ranges::fill(dense_.Gradient(first_dense_[i] + 1), 0.0F);
      touched_[i] = true;
    }
    return dense_.Gradients();
  }

  const std::vector<ParameterSpec>& tables() const { return tables_; }
  DenseStore& dense() { return dense_; }
  const OpenStep& step(int slot) const { return open_.at(static_cast<size_t>(slot)); }
  MicroBatchState& micro_batch(Pass pass) {
    return open_.at(static_cast<size_t>(pass.slot)).micro_batches.at(static_cast<size_t>(pass.micro));
  }
  MicroBatchState& inference() { return infer_; }

 private:
  static constexpr int64_t kNoStep = -1;

  // A weight decay would change them, though their gradient is 0.
  void KeepFixedRows() {
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (operations_[i].pass_first) {
        PassFirst(dense_.Weights(first_dense_[i]), static_cast<size_t>(operations_[i].output_width));
      }
    }
  }

  OpenStep& Open(int slot) {
    while (open_.size() <= static_cast<size_t>(slot)) open_.emplace_back().rows.resize(tables_.size());
    return open_[static_cast<size_t>(slot)];
  }
  // The k-th input of an operation.
  Matrix InputOf(const MicroBatchState& batch, size_t index, size_t k = 0) const;
  std::span<const float> FloatsOf(const MicroBatchState& batch, size_t index, size_t k) const;
  void Embed(const MicroBatchState& batch, size_t index, MutableMatrix out);
  IdColumns IdsOf(const MicroBatchState& batch, size_t index) const {
    const ParameterSpec& table = tables_[table_of_[index]];
    return {batch.features.ids, shape_.fields, table.first_field, table.fields};
  }
  Matrix Weights(int64_t version, size_t index) {
    const ParameterSpec& spec = operations_[index].parameters.front();
    return {dense_.WeightsOf(version, first_dense_[index]).data(), spec.rows, spec.columns};
  }
  // A source's place among the values of gradients_: the operations of the block, then its inputs.
  size_t PlaceOf(const Source& source) const {
    return source.inside ? source.index : operations_.size() + source.index;
  }
  // Multiplies values or gradients of an operation's output by its mask.
  void Drop(const MicroBatchState& batch, size_t index, MutableMatrix values);
  // The gradient in a buffer that may be written.
  Gradient Writable(Gradient gradient, size_t floats);
  // Each takes the gradient of an operation's output, with its buffer, and gives those of its inputs.
  void BackEmbedding(size_t index, const MicroBatchState& batch, Gradient gradient);
  void BackFullyConnected(size_t index, const MicroBatchState& batch, Gradient gradient);
  void BackAdd(size_t index, const MicroBatchState& batch, Gradient gradient);
  void BackMultiply(size_t index, const MicroBatchState& batch, Gradient gradient);

  const std::shared_ptr<ComputeThreads> threads_;
  const SampleShape shape_;
  const std::vector<Operation> operations_;
  const int first_;  // index of the first operation in the model
  const uint64_t seed_;
  const BlockShape block_;
  std::vector<size_t> first_dense_;  // index of each operation's first dense parameter
  std::vector<size_t> table_of_;     // index of each embedding's table
  std::vector<ParameterSpec> tables_;
  DenseStore dense_;
  std::vector<OpenStep> open_;  // by slot
  MicroBatchState infer_;
  int64_t gradient_step_ = kNoStep;  // of the dense gradients
  std::vector<bool> touched_;        // by operation: whether its dense gradients belong to gradient_step_
  GradientSums gradients_;
  std::vector<std::span<const float>> input_gradients_;
};

absl::Status BlockModel::Rep::CheckSizes(const BatchView& features, Values inputs) const {
  const size_t samples = static_cast<size_t>(features.samples);
  const auto is = [&](size_t size, int width) { return size == samples * static_cast<size_t>(width); };
  if (!is(features.ids.size(), shape_.fields) || !is(features.numerics.size(), shape_.numerics) ||
      !is(features.labels.size(), shape_.labels) || !is(features.weights.size(), features.weights.empty() ? 0 : 1)) {
    return base::InvalidArgument(
        "the batch of {} samples has {} ids, {} numerics and {} labels, which do not match the model", samples,
        features.ids.size(), features.numerics.size(), features.labels.size());
  }
  return CheckValues("input", block_.inputs, inputs, features.samples);
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
  const float* data = source.inside ? batch.outputs[source.index].data() : batch.inputs[source.index];
  return {data, samples, operation.input_width};
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
      case OperationKind::kAdd:
        Add(FloatsOf(batch, i, 0), FloatsOf(batch, i, 1), batch.outputs[i].First(samples * width));
        break;
      case OperationKind::kMultiply:
        Multiply(FloatsOf(batch, i, 0), FloatsOf(batch, i, 1), batch.outputs[i].First(samples * width));
        break;
      case OperationKind::kLoss:
        if (!training) break;
        open.loss_sum += LossGradient(operation, InputOf(batch, i), features.labels, open.scale, out, features.weights);
        open.loss_samples += features.samples;
        break;
      case OperationKind::kImported:
        break;  // Create has refused it
    }
    if (training && operation.dropout > 0) {
      if (KeepsUndropped(operation)) {
        batch.undropped[i].Grow(samples * width);
        std::ranges::copy(batch.outputs[i].First(samples * width), batch.undropped[i].data());
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
  if (IsLast() && !training) batch.returned = {FloatsOf(batch, operations_.size() - 1, 0)};
  return batch.returned;
}

Gradient BlockModel::Rep::Writable(Gradient gradient, size_t floats) {
  if (gradient.buffer >= 0) return gradient;
  const Gradient copy = gradients_.New(floats);
  std::copy_n(gradient.data, floats, gradients_.Memory(copy));
  return copy;
}

void BlockModel::Rep::BackEmbedding(size_t index, const MicroBatchState& batch, Gradient gradient) {
  if (operations_[index].dropout > 0) {
    const int64_t samples = batch.features.samples, width = operations_[index].output_width;
    gradient = Writable(gradient, static_cast<size_t>(samples * width));
    Drop(batch, index, {gradients_.Memory(gradient), samples, width});
  }
  TableRows& rows = open_[static_cast<size_t>(batch.slot)].rows[table_of_[index]];
  const int64_t columns = tables_[table_of_[index]].columns;
  EmbeddingBackward(IdsOf(batch, index), operations_[index].sum_fields,
                    {gradient.data, batch.features.samples, operations_[index].output_width},
                    {rows.gradients.data(), static_cast<int64_t>(rows.floats) / columns, columns});
  gradients_.Free(gradient);
}

void BlockModel::Rep::BackFullyConnected(size_t index, const MicroBatchState& batch, Gradient gradient) {
  const Operation& operation = operations_[index];
  const int64_t samples = batch.features.samples;
  if (operation.activation != Activation::kNone) {
    const Gradient dy = gradient;
    if (dy.buffer < 0) gradient = gradients_.New(static_cast<size_t>(samples * operation.output_width));
    const AlignedFloats& outputs = KeepsUndropped(operation) ? batch.undropped[index] : batch.outputs[index];
    ActivationBackward(operation.activation, {outputs.data(), samples, operation.output_width},
                       {dy.data, samples, operation.output_width},
                       {gradients_.Memory(gradient), samples, operation.output_width});
  }
  if (operation.dropout > 0) {
    gradient = Writable(gradient, static_cast<size_t>(samples * operation.output_width));
    Drop(batch, index, {gradients_.Memory(gradient), samples, operation.output_width});
  }
  const Matrix dz{gradient.data, samples, operation.output_width};
  const ParameterSpec& spec = operation.parameters.front();
  const std::span<float> dw = dense_.Gradient(first_dense_[index]);
  LinearBackwardWeights(InputOf(batch, index), dz, touched_[index], {dw.data(), spec.rows, spec.columns},
                        dense_.Gradient(first_dense_[index] + 1), *threads_);
  touched_[index] = true;
  if (operation.pass_first) {
    std::ranges::fill(dw.first(static_cast<size_t>(spec.columns * spec.columns)), 0.0F);
  }
  if (!operation.inputs.empty()) {
    const size_t floats = static_cast<size_t>(samples * spec.rows);
    const Gradient dx = gradients_.New(floats);
    LinearBackwardInput(dz, Weights(step(batch.slot).version, index), {gradients_.Memory(dx), samples, spec.rows},
                        *threads_);
    gradients_.Give(PlaceOf(block_.sources[index][0]), dx, floats);
  }
  gradients_.Free(gradient);
}

void BlockModel::Rep::BackAdd(size_t index, const MicroBatchState& batch, Gradient gradient) {
  const size_t floats = static_cast<size_t>(batch.features.samples * operations_[index].output_width);
  Gradient other = gradient;
  if (gradient.buffer >= 0) {
    other = gradients_.New(floats);
    std::copy_n(gradient.data, floats, gradients_.Memory(other));
  }
  gradients_.Give(PlaceOf(block_.sources[index][0]), other, floats);
  gradients_.Give(PlaceOf(block_.sources[index][1]), gradient, floats);
}

void BlockModel::Rep::BackMultiply(size_t index, const MicroBatchState& batch, Gradient gradient) {
  const size_t floats = static_cast<size_t>(batch.features.samples * operations_[index].output_width);
  const std::span<const float> dy{gradient.data, floats};
  for (size_t k = 0; k < 2; ++k) {
    const Gradient dx = gradients_.New(floats);
    Multiply(dy, FloatsOf(batch, index, 1 - k), {gradients_.Memory(dx), floats});
    gradients_.Give(PlaceOf(block_.sources[index][k]), dx, floats);
  }
  gradients_.Free(gradient);
}

absl::StatusOr<Values> BlockModel::Rep::Back(Pass pass, Values output_gradients) {
  MicroBatchState& batch = micro_batch(pass);
  if (const int64_t now = step(pass.slot).step; now != gradient_step_) {
    std::fill(touched_.begin(), touched_.end(), false);
    gradient_step_ = now;
  }
  const size_t samples = static_cast<size_t>(batch.features.samples);
  MEDLEY_RETURN_IF_ERROR(CheckValues("output gradient", block_.outputs, output_gradients, batch.features.samples));
  input_gradients_.assign(block_.inputs.size(), {});
  if (samples == 0) return input_gradients_;
  gradients_.Begin(operations_.size() + block_.inputs.size());
  for (size_t k = 0; k < block_.outputs.size(); ++k) {
    gradients_.Give(static_cast<size_t>(block_.outputs[k].operation - first_), {output_gradients[k].data(), -1},
                    output_gradients[k].size());
  }
  for (size_t i = operations_.size(); i-- > 0;) {
    switch (operations_[i].kind) {
      case OperationKind::kEmbedding:
        BackEmbedding(i, batch, gradients_.Take(i));
        break;
      case OperationKind::kFullyConnected:
        BackFullyConnected(i, batch, gradients_.Take(i));
        break;
      case OperationKind::kAdd:
        BackAdd(i, batch, gradients_.Take(i));
        break;
      case OperationKind::kMultiply:
        BackMultiply(i, batch, gradients_.Take(i));
        break;
      case OperationKind::kLoss:
        gradients_.Give(PlaceOf(block_.sources[i][0]), {batch.outputs[i].data(), -1},
                        samples * static_cast<size_t>(operations_[i].input_width));
        break;
      case OperationKind::kImported:
        break;
    }
  }
  for (size_t k = 0; k < block_.inputs.size(); ++k) {
    input_gradients_[k] = {gradients_.At(operations_.size() + k),
                           samples * static_cast<size_t>(block_.inputs[k].width)};
  }
  return input_gradients_;
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
std::array<std::span<float>, 2> BlockModel::Newest() { return rep_->dense().Newest(); }
void BlockModel::KeepAgreed() { rep_->dense().KeepAgreed(); }
void BlockModel::ForgetAgreed() { rep_->dense().ForgetAgreed(); }
int64_t BlockModel::AgreedStep() const { return rep_->dense().agreed_step(); }
int64_t BlockModel::AppliedStep() const { return rep_->dense().applied_step(); }
int64_t BlockModel::UndoLimit() const { return rep_->dense().undo_limit(); }
absl::Status BlockModel::UndoTo(int64_t step) { return rep_->dense().UndoTo(step); }
void BlockModel::SetAppliedStep(int64_t step) { rep_->dense().SetAppliedStep(step); }

}  // namespace medley::worker
