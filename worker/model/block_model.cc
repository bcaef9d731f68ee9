#include "worker/model/block_model.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "common/base/status.h"
#include "worker/model/aligned_floats.h"
#include "worker/model/dense_store.h"
#include "worker/model/kernels.h"
#include "worker/model/losses.h"

namespace medley::worker {
namespace {

// The inputs and outputs of one micro-batch, kept from its forward to its backward pass.
struct MicroBatchState {
  BatchView features;
  const float* input = nullptr;
  std::vector<AlignedFloats> outputs;  // one per operation
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

}  // namespace

class BlockModel::Rep {
 public:
  Rep(const Graph& graph, model::OperationRange range, const Optimizer& optimizer, uint64_t seed,
      std::shared_ptr<ComputeThreads> threads)
      : threads_(threads != nullptr ? std::move(threads) : std::make_shared<ComputeThreads>(1)),
        shape_(graph.shape),
        operations_(graph.operations.begin() + range.first, graph.operations.begin() + range.end),
        dense_(DenseSpecs(operations_), optimizer, seed) {
    size_t next = 0;
    for (const Operation& operation : operations_) {
      first_dense_.push_back(next);
      for (const ParameterSpec& spec : operation.parameters) {
        if (spec.sparse) {
          tables_.push_back(spec);
        } else {
          ++next;
        }
      }
      if (operation.pass_first) {
        PassFirst(dense_.Weights(first_dense_.back()), static_cast<size_t>(operation.output_width));
      }
    }
    infer_.outputs.resize(operations_.size());
    touched_.resize(operations_.size());
  }

  int InputWidth() const { return operations_.front().input_width; }
  int OutputWidth() const { return operations_.back().output_width; }
  bool IsLast() const { return operations_.back().kind == OperationKind::kLoss; }

  void BeginStep(const StepShape& shape) {
    scale_ = 1.0F / static_cast<float>(std::max(1, shape.global_samples));
    while (micro_batches_.size() < static_cast<size_t>(shape.micro_batches)) {
      micro_batches_.emplace_back().outputs.resize(operations_.size());
    }
    std::fill(touched_.begin(), touched_.end(), false);
    loss_sum_ = 0;
    loss_samples_ = 0;
  }

  void SetRows(int table, std::span<const float> rows) {
    MEDLEY_CHECK(table == 0 && tables_.size() == 1, "a stage has at most one table, number 0");
    row_floats_ = rows.size();
    rows_.Grow(row_floats_);
    row_gradients_.Grow(row_floats_);
    std::ranges::copy(rows, rows_.data());
    std::ranges::fill(row_gradients_.First(row_floats_), 0.0F);
  }

  absl::Status CheckSizes(const BatchView& features, std::span<const float> input) const;
  std::span<const float> Run(MicroBatchState& batch, const BatchView& features, std::span<const float> input,
                             bool training);
  std::span<const float> Back(int micro, std::span<const float> output_gradient);

  std::span<const float> RowGradients() const { return row_gradients_.First(row_floats_); }
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
  MicroBatchState& micro_batch(int micro) { return micro_batches_.at(static_cast<size_t>(micro)); }
  MicroBatchState& inference() { return infer_; }
  double loss_sum() const { return loss_sum_; }
  int64_t loss_samples() const { return loss_samples_; }

 private:
  Matrix InputOf(const MicroBatchState& batch, size_t index) const;
  Matrix RowMatrix() const {
    const int64_t columns = tables_.front().columns;
    return {rows_.data(), static_cast<int64_t>(row_floats_) / columns, columns};
  }
  Matrix Weights(size_t index) {
    const ParameterSpec& spec = operations_[index].parameters.front();
    return {dense_.Weights(first_dense_[index]).data(), spec.rows, spec.columns};
  }
  void BackFullyConnected(size_t index, const MicroBatchState& batch, Matrix dz);

  const std::shared_ptr<ComputeThreads> threads_;
  const SampleShape shape_;
  const std::vector<Operation> operations_;
  std::vector<size_t> first_dense_;  // index of each operation's first dense parameter
  std::vector<ParameterSpec> tables_;
  DenseStore dense_;
  AlignedFloats rows_;
  AlignedFloats row_gradients_;
  size_t row_floats_ = 0;
  std::vector<MicroBatchState> micro_batches_;
  MicroBatchState infer_;
  std::vector<bool> touched_;  // by operation: whether its dense gradients belong to this step
  AlignedFloats dz_;           // gradient of an operation's output before its activation
  AlignedFloats dx_;           // gradient of its input
  float scale_ = 1;
  double loss_sum_ = 0;
  int64_t loss_samples_ = 0;
};

absl::Status BlockModel::Rep::CheckSizes(const BatchView& features, std::span<const float> input) const {
  const size_t samples = static_cast<size_t>(features.samples);
  const auto is = [&](size_t size, int width) { return size == samples * static_cast<size_t>(width); };
  if (!is(features.ids.size(), shape_.fields) || !is(features.numerics.size(), shape_.numerics) ||
      !is(features.labels.size(), shape_.labels)) {
    return base::InvalidArgument(
        "the batch of {} samples has {} ids, {} numerics and {} labels, which do not match the model", samples,
        features.ids.size(), features.numerics.size(), features.labels.size());
  }
  if (!is(input.size(), InputWidth())) {
    return base::InvalidArgument("the input of {} samples has {} floats, the stage needs {} per sample", samples,
                                 input.size(), InputWidth());
  }
  return absl::OkStatus();
}

Matrix BlockModel::Rep::InputOf(const MicroBatchState& batch, size_t index) const {
  const Operation& operation = operations_[index];
  const int64_t samples = batch.features.samples;
  if (operation.reads_numerics) return {batch.features.numerics.data(), samples, shape_.numerics};
  return {index == 0 ? batch.input : batch.outputs[index - 1].data(), samples, operation.input_width};
}

std::span<const float> BlockModel::Rep::Run(MicroBatchState& batch, const BatchView& features,
                                            std::span<const float> input, bool training) {
  batch.features = features;
  batch.input = input.data();
  const size_t samples = static_cast<size_t>(features.samples);
  if (samples == 0) return {};
  for (size_t i = 0; i < operations_.size(); ++i) {
    const Operation& operation = operations_[i];
    // The loss operation stores its gradient where other operations store their output.
    const bool loss = operation.kind == OperationKind::kLoss;
    const size_t width = static_cast<size_t>(loss ? operation.input_width : operation.output_width);
    batch.outputs[i].Grow(samples * width);
    const MutableMatrix out{batch.outputs[i].data(), features.samples, static_cast<int64_t>(width)};
    switch (operation.kind) {
      case OperationKind::kEmbedding:
        EmbeddingForward(features.ids, shape_.fields, features.numerics, RowMatrix(), operation.sum_fields, out);
        break;
      case OperationKind::kFullyConnected:
        LinearForward(InputOf(batch, i), Weights(i), dense_.Weights(first_dense_[i] + 1), operation.activation, out,
                      *threads_);
        break;
      case OperationKind::kLoss: {
        const Matrix logits = InputOf(batch, i);
        if (!training) return {logits.data, samples * width};
        loss_sum_ += LossGradient(operation, logits, features.labels, scale_, out);
        loss_samples_ += features.samples;
        return {};
      }
    }
  }
  return batch.outputs.back().First(samples * static_cast<size_t>(OutputWidth()));
}

void BlockModel::Rep::BackFullyConnected(size_t index, const MicroBatchState& batch, Matrix dz) {
  const ParameterSpec& spec = operations_[index].parameters.front();
  const std::span<float> dw = dense_.Gradient(first_dense_[index]);
  LinearBackwardWeights(InputOf(batch, index), dz, touched_[index], {dw.data(), spec.rows, spec.columns},
                        dense_.Gradient(first_dense_[index] + 1), *threads_);
  touched_[index] = true;
  if (operations_[index].pass_first) {
    std::ranges::fill(dw.first(static_cast<size_t>(spec.columns * spec.columns)), 0.0F);
  }
  if (operations_[index].reads_numerics) return;
  dx_.Grow(static_cast<size_t>(dz.rows * spec.rows));
  LinearBackwardInput(dz, Weights(index), {dx_.data(), dz.rows, spec.rows}, *threads_);
}

std::span<const float> BlockModel::Rep::Back(int micro, std::span<const float> output_gradient) {
  MicroBatchState& batch = micro_batches_.at(static_cast<size_t>(micro));
  const int64_t samples = batch.features.samples;
  if (samples == 0) return {};
  const float* gradient = output_gradient.data();
  for (size_t i = operations_.size(); i-- > 0;) {
    const Operation& operation = operations_[i];
    const Matrix dy{gradient, samples, operation.output_width};
    switch (operation.kind) {
      case OperationKind::kEmbedding: {
        const Matrix rows = RowMatrix();
        EmbeddingBackward(batch.features.ids, shape_.fields, operation.sum_fields, dy,
                          {row_gradients_.data(), rows.rows, rows.columns});
        break;
      }
      case OperationKind::kFullyConnected: {
        dz_.Grow(static_cast<size_t>(samples * operation.output_width));
        const Matrix y{batch.outputs[i].data(), samples, operation.output_width};
        if (operation.activation == Activation::kNone && dy.data != dx_.data()) {
          BackFullyConnected(i, batch, dy);
        } else {
          ActivationBackward(operation.activation, y, dy, {dz_.data(), samples, operation.output_width});
          BackFullyConnected(i, batch, {dz_.data(), samples, operation.output_width});
        }
        gradient = dx_.data();
        break;
      }
      case OperationKind::kLoss:
        gradient = batch.outputs[i].data();
        break;
    }
  }
  return {gradient, static_cast<size_t>(samples * InputWidth())};
}

BlockModel::BlockModel(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
BlockModel::~BlockModel() = default;

absl::StatusOr<std::unique_ptr<BlockModel>> BlockModel::Create(const Graph& graph, model::OperationRange range,
                                                               const Optimizer& optimizer, uint64_t seed,
                                                               std::shared_ptr<ComputeThreads> threads) {
  const int count = static_cast<int>(graph.operations.size());
  if (range.first < 0 || range.first >= range.end || range.end > count) {
    return base::InvalidArgument("a stage cannot have operations [{}, {}): the model has {}", range.first, range.end,
                                 count);
  }
  return std::unique_ptr<BlockModel>(
      new BlockModel(std::make_unique<Rep>(graph, range, optimizer, seed, std::move(threads))));
}

int BlockModel::InputWidth() const { return rep_->InputWidth(); }
int BlockModel::OutputWidth() const { return rep_->OutputWidth(); }
bool BlockModel::IsLast() const { return rep_->IsLast(); }
const std::vector<ParameterSpec>& BlockModel::Tables() const { return rep_->tables(); }
void BlockModel::BeginStep(const StepShape& shape) { rep_->BeginStep(shape); }
void BlockModel::SetRows(int table, std::span<const float> rows) { rep_->SetRows(table, rows); }

absl::StatusOr<std::span<const float>> BlockModel::Forward(int micro, const BatchView& features,
                                                           std::span<const float> input) try {
  MEDLEY_RETURN_IF_ERROR(rep_->CheckSizes(features, input));
  return rep_->Run(rep_->micro_batch(micro), features, input, /*training=*/true);
} catch (const std::exception& error) {
  return base::Internal("forward pass of micro-batch {}: {}", micro, error.what());
}

absl::StatusOr<std::span<const float>> BlockModel::Backward(int micro, std::span<const float> output_gradient) try {
  const size_t samples = static_cast<size_t>(rep_->micro_batch(micro).features.samples);
  if (output_gradient.size() != samples * static_cast<size_t>(OutputWidth())) {
    return base::InvalidArgument("the output gradient of {} samples has {} floats, the stage needs {} per sample",
                                 samples, output_gradient.size(), OutputWidth());
  }
  return rep_->Back(micro, output_gradient);
} catch (const std::exception& error) {
  return base::Internal("backward pass of micro-batch {}: {}", micro, error.what());
}

absl::StatusOr<std::span<const float>> BlockModel::Infer(const BatchView& features, std::span<const float> input) try {
  MEDLEY_RETURN_IF_ERROR(rep_->CheckSizes(features, input));
  return rep_->Run(rep_->inference(), features, input, /*training=*/false);
} catch (const std::exception& error) {
  return base::Internal("inference: {}", error.what());
}

std::span<const float> BlockModel::RowGradients(int table) const {
  MEDLEY_CHECK(table == 0 && rep_->tables().size() == 1, "a stage has at most one table, number 0");
  return rep_->RowGradients();
}
std::span<float> BlockModel::Gradients() { return rep_->Gradients(); }
std::vector<DenseParameter> BlockModel::Parameters() { return rep_->dense().Parameters(); }
double BlockModel::LossSum() const { return rep_->loss_sum(); }
int64_t BlockModel::LossSamples() const { return rep_->loss_samples(); }

absl::Status BlockModel::ApplyUpdate(const Optimizer& optimizer) {
  rep_->Gradients();
  rep_->dense().ApplyUpdate(optimizer);
  return absl::OkStatus();
}
int64_t BlockModel::AppliedStep() const { return rep_->dense().applied_step(); }
int64_t BlockModel::UndoLimit() const { return rep_->dense().undo_limit(); }
absl::Status BlockModel::UndoTo(int64_t step) { return rep_->dense().UndoTo(step); }
void BlockModel::SetAppliedStep(int64_t step) { rep_->dense().SetAppliedStep(step); }

}  // namespace medley::worker
