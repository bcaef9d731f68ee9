// The inside of BlockModel: block_model.cc has its forward passes, block_backward.cc its backward passes.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/model/operation_range.h"
#include "worker/model/block_model.h"
#include "worker/model/block_shape.h"
#include "worker/model/block_state.h"
#include "worker/model/dense_store.h"
#include "worker/model/gradient_sums.h"
#include "worker/model/kernels.h"
#include "worker/model/vector_layers.h"

namespace medley::worker {

// A matrix, then a bias.
inline bool HasWeights(const Operation& operation) {
  return operation.kind == OperationKind::kFullyConnected || operation.kind == OperationKind::kCross;
}

// Whether the gradient of the activation needs the outputs as they were before dropout.
inline bool KeepsUndropped(const Operation& operation) {
  return operation.dropout > 0 &&
         (operation.activation == Activation::kSigmoid || operation.activation == Activation::kTanh);
}

class BlockModel::Rep {
 public:
  Rep(const Graph& graph, model::OperationRange range, const Optimizer& optimizer, uint64_t seed,
      std::shared_ptr<ComputeThreads> threads, int kept_updates);

  const BlockShape& block() const { return block_; }
  bool IsLast() const { return operations_.back().kind == OperationKind::kLoss; }

  void BeginStep(const StepShape& shape);

  void SetRows(int slot, int table, std::span<const float> values);

  void Update(const Optimizer& optimizer);

  absl::Status CheckSizes(const BatchView& features, Values inputs) const;
  Values Run(MicroBatchState& batch, const BatchView& features, Values inputs, bool training);
  absl::StatusOr<Values> Back(Pass pass, Values output_gradients);

  std::span<const float> RowGradients(int slot, int table) const {
    const TableRows& rows = step(slot).rows.at(static_cast<size_t>(table));
    return rows.gradients.First(rows.floats);
  }
  // Zeroes the gradients of operations without samples in this step first: they still hold values of an earlier step.
  std::span<float> Gradients();

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
  void KeepFixedRows();

  OpenStep& Open(int slot) {
    while (open_.size() <= static_cast<size_t>(slot)) open_.emplace_back().rows.resize(tables_.size());
    return open_[static_cast<size_t>(slot)];
  }
  // The k-th input of an operation.
  Matrix InputOf(const MicroBatchState& batch, size_t index, size_t k = 0) const;
  std::span<const float> FloatsOf(const MicroBatchState& batch, size_t index, size_t k) const;
  // All inputs of an operation; valid until the next call.
  std::span<const LayerInput> LayerInputs(const MicroBatchState& batch, size_t index);
  void Embed(const MicroBatchState& batch, size_t index, MutableMatrix out);
  void RunCross(MicroBatchState& batch, size_t index, int64_t version, MutableMatrix out);
  // What predictions take of the loss's input.
  std::span<const float> Logits(MicroBatchState& batch) const;
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
  void BackVectors(size_t index, const MicroBatchState& batch, Gradient gradient);
  void BackCross(size_t index, const MicroBatchState& batch, Gradient gradient);
  std::span<float> BiasGradient(size_t index) { return dense_.Gradient(first_dense_[index] + 1); }
  // Adds to the gradients of the weights, which it returns. Call it last: the bias's gradient must have been added to.
  std::span<float> BackWeights(size_t index, Matrix x, Matrix dz);

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
  std::vector<LayerInput> layer_inputs_;
};

}  // namespace medley::worker
