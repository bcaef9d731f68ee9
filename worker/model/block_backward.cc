#include <algorithm>

#include "common/base/status.h"
#include "worker/model/block_rep.h"
#include "worker/model/random.h"

namespace medley::worker {

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

std::span<float> BlockModel::Rep::BackWeights(size_t index, Matrix x, Matrix dz) {
  const ParameterSpec& spec = operations_[index].parameters.front();
  const std::span<float> dw = dense_.Gradient(first_dense_[index]);
  LinearBackwardWeights(x, dz, touched_[index], {dw.data(), spec.rows, spec.columns}, *threads_);
  touched_[index] = true;
  return dw;
}

void BlockModel::Rep::BackFullyConnected(size_t index, const MicroBatchState& batch, Gradient gradient) {
  const Operation& operation = operations_[index];
  const int64_t samples = batch.features.samples;
  const int64_t width = operation.output_width;
  const bool drops = operation.dropout > 0, has_activation = operation.activation != Activation::kNone;
  if (has_activation) {
    const Gradient dy = gradient;
    if (dy.buffer < 0) gradient = gradients_.New(static_cast<size_t>(samples * width));
    const AlignedFloats& outputs = KeepsUndropped(operation) ? batch.kept[index] : batch.outputs[index];
    const Matrix y{outputs.data(), samples, width}, from{dy.data, samples, width};
    const MutableMatrix to{gradients_.Memory(gradient), samples, width};
    if (drops) {
      ActivationBackward(operation.activation, y, from, to);
    } else {
      ActivationAndBiasBackward(operation.activation, y, from, to, touched_[index], BiasGradient(index));
    }
  }
  if (drops) {
    gradient = Writable(gradient, static_cast<size_t>(samples * width));
    Drop(batch, index, {gradients_.Memory(gradient), samples, width});
  }
  const Matrix dz{gradient.data, samples, width};
  if (drops || !has_activation) BiasBackward(dz, touched_[index], BiasGradient(index));
  const ParameterSpec& spec = operation.parameters.front();
  const std::span<float> dw = BackWeights(index, InputOf(batch, index), dz);
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
  const std::vector<Source>& sources = block_.sources[index];
  for (size_t k = 0; k + 1 < sources.size(); ++k) {
    Gradient other = gradient;
    if (gradient.buffer >= 0) {
      other = gradients_.New(floats);
      std::copy_n(gradient.data, floats, gradients_.Memory(other));
    }
    gradients_.Give(PlaceOf(sources[k]), other, floats);
  }
  gradients_.Give(PlaceOf(sources.back()), gradient, floats);
}

void BlockModel::Rep::BackVectors(size_t index, const MicroBatchState& batch, Gradient gradient) {
  const std::span<const LayerInput> inputs = LayerInputs(batch, index);
  const int64_t samples = batch.features.samples;
  std::vector<Gradient> given;
  std::vector<float*> dx;
  for (const LayerInput& input : inputs) {
    given.push_back(gradients_.New(static_cast<size_t>(samples * input.width)));
    dx.push_back(gradients_.Memory(given.back()));
  }
  const auto flops = static_cast<int64_t>(2 * VectorLayerFlops(operations_[index]));
  threads_->ForEach(samples, flops, [&](int64_t first, int64_t end) {
    VectorLayerBackward(operations_[index], inputs, gradient.data, first, end, dx);
  });
  for (size_t k = 0; k < inputs.size(); ++k) {
    gradients_.Give(PlaceOf(block_.sources[index][k]), given[k], static_cast<size_t>(samples * inputs[k].width));
  }
  gradients_.Free(gradient);
}

// y = x0 * u + x, where u = x W + b was kept.
void BlockModel::Rep::BackCross(size_t index, const MicroBatchState& batch, Gradient gradient) {
  const int64_t samples = batch.features.samples, width = operations_[index].output_width;
  const size_t floats = static_cast<size_t>(samples * width), last = block_.sources[index].size() - 1;
  const std::span<const float> dy{gradient.data, floats};
  const Gradient du = gradients_.New(floats), dx = gradients_.New(floats);
  const std::span<float> to_u{gradients_.Memory(du), floats}, to_x{gradients_.Memory(dx), floats};
  Multiply(dy, FloatsOf(batch, index, 0), to_u);
  BiasBackward({to_u.data(), samples, width}, touched_[index], BiasGradient(index));
  BackWeights(index, InputOf(batch, index, last), {to_u.data(), samples, width});
  LinearBackwardInput({to_u.data(), samples, width}, Weights(step(batch.slot).version, index),
                      {to_x.data(), samples, width}, *threads_);
  Add(to_x, dy, to_x);
  Multiply(dy, batch.kept[index].First(floats), to_u);  // of x0
  gradients_.Give(PlaceOf(block_.sources[index][0]), du, floats);
  gradients_.Give(PlaceOf(block_.sources[index][last]), dx, floats);
  gradients_.Free(gradient);
}

absl::StatusOr<Values> BlockModel::Rep::Back(Pass pass, Values output_gradients) {
  MicroBatchState& batch = micro_batch(pass);
  if (const int64_t now = step(pass.slot).step; now != gradient_step_) {
    std::fill(touched_.begin(), touched_.end(), false);
    gradient_step_ = now;
  }
  const size_t samples = static_cast<size_t>(batch.features.samples);
  MEDLEY_RETURN_IF_ERROR(CheckBlockValues("output gradient", block_.outputs, output_gradients, batch.features.samples));
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
      case OperationKind::kCross:
        BackCross(i, batch, gradients_.Take(i));
        break;
      case OperationKind::kNumerics:
        gradients_.Free(gradients_.Take(i));
        break;
      case OperationKind::kLoss:
        gradients_.Give(PlaceOf(block_.sources[i][0]), {batch.outputs[i].data(), -1},
                        samples * static_cast<size_t>(operations_[i].input_width));
        break;
      case OperationKind::kImported:
        break;
      default:
        BackVectors(i, batch, gradients_.Take(i));
    }
  }
  for (size_t k = 0; k < block_.inputs.size(); ++k) {
    input_gradients_[k] = {gradients_.At(operations_.size() + k),
                           samples * static_cast<size_t>(block_.inputs[k].width)};
  }
  return input_gradients_;
}

}  // namespace medley::worker
