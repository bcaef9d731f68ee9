#include "worker/model/vector_layers.h"

#include <algorithm>
#include <vector>

#include "worker/model/vector_products.h"

namespace medley::worker {
namespace {

// --- Concat, Add, Multiply

void ConcatForward(std::span<const LayerInput> inputs, int64_t rows, int64_t width, float* y) {
  for (const LayerInput& input : inputs) {
    for (int64_t row = 0; row < rows; ++row) {
      std::copy_n(input.data + row * input.stride, input.width, y + row * width);
    }
    y += input.width;
  }
}

void ConcatBackward(std::span<const LayerInput> inputs, const float* dy, int64_t rows, int64_t width,
                    std::span<float* const> dx) {
  for (size_t k = 0; k < inputs.size(); ++k) {
    const int64_t mine = inputs[k].width;
    for (int64_t row = 0; row < rows; ++row) std::copy_n(dy + row * width, mine, dx[k] + row * mine);
    dy += mine;
  }
}

void AddForward(std::span<const LayerInput> inputs, int64_t rows, int64_t width, float* y) {
  for (int64_t row = 0; row < rows; ++row, y += width) {
    std::copy_n(inputs[0].data + row * inputs[0].stride, width, y);
    for (const LayerInput& input : inputs.subspan(1)) {
      const float* const from = input.data + row * input.stride;
      for (int64_t i = 0; i < width; ++i) y[i] += from[i];
    }
  }
}

void MultiplyForward(std::span<const LayerInput> inputs, int64_t rows, int64_t width, float* y) {
  for (int64_t row = 0; row < rows; ++row, y += width) {
    const float* const a = inputs[0].data + row * inputs[0].stride;
    const float* const b = inputs[1].data + row * inputs[1].stride;
    for (int64_t i = 0; i < width; ++i) y[i] = a[i] * b[i];
  }
}

void MultiplyBackward(std::span<const LayerInput> inputs, const float* dy, int64_t rows, int64_t width,
                      std::span<float* const> dx) {
  for (size_t k = 0; k < 2; ++k) {
    const LayerInput& other = inputs[1 - k];
    for (int64_t row = 0; row < rows; ++row) {
      const float* const b = other.data + row * other.stride;
      for (int64_t i = 0; i < width; ++i) dx[k][row * width + i] = dy[row * width + i] * b[i];
    }
  }
}

// --- Slice

void SliceForward(const Operation& operation, const LayerInput& input, int64_t rows, float* y) {
  const int64_t dim = VectorLength(operation, input), vectors = input.width / dim,
                kept = operation.output_width / vectors;
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = input.data + row * input.stride + operation.first;
    for (int64_t v = 0; v < vectors; ++v, from += dim, y += kept) std::copy_n(from, kept, y);
  }
}

void SliceBackward(const Operation& operation, const LayerInput& input, const float* dy, int64_t rows, float* dx) {
  const int64_t dim = VectorLength(operation, input), vectors = input.width / dim,
                kept = operation.output_width / vectors;
  std::fill_n(dx, rows * input.width, 0.0F);
  dx += operation.first;
  for (int64_t v = 0; v < rows * vectors; ++v, dx += dim, dy += kept) std::copy_n(dy, kept, dx);
}

}  // namespace

double VectorLayerFlops(const Operation& operation) {
  const double inputs = operation.input_width, outputs = operation.output_width, dim = operation.dim;
  switch (operation.kind) {
    case OperationKind::kAdd:
      return outputs * static_cast<double>(operation.inputs.size() - 1);
    case OperationKind::kMultiply:
      return outputs;
    case OperationKind::kPool:
      return inputs;
    case OperationKind::kInteraction:
    case OperationKind::kMatch:
      return 2 * dim * outputs;
    case OperationKind::kFactorizationMachine:
      return 3 * inputs + 2 * dim;  // two sums and a square, then the squares of the sums
    case OperationKind::kInnerProduct:
      return inputs;  // of both: a multiplication and an addition for each pair of numbers
    case OperationKind::kCosine:
      return 3 * inputs + 3 * outputs;
    case OperationKind::kCross:
      return 2 * outputs * outputs + 3 * outputs;
    default:
      return 0;
  }
}

double KeptFloats(const Operation& operation) {
  return operation.output_width * (operation.kind == OperationKind::kCross ? 2.0 : 1.0);  // the product too
}

namespace {

// The inputs from a row on.
std::vector<LayerInput> From(std::span<const LayerInput> inputs, int64_t row) {
  std::vector<LayerInput> shifted(inputs.begin(), inputs.end());
  for (LayerInput& input : shifted) input.data += row * input.stride;
  return shifted;
}

}  // namespace

void VectorLayerForward(const Operation& operation, std::span<const LayerInput> inputs, int64_t first, int64_t end,
                        float* y) {
  const std::vector<LayerInput> mine = From(inputs, first);
  const int64_t width = operation.output_width, rows = end - first;
  y += first * width;
  switch (operation.kind) {
    case OperationKind::kConcat:
      return ConcatForward(mine, rows, width, y);
    case OperationKind::kAdd:
      return AddForward(mine, rows, width, y);
    case OperationKind::kMultiply:
      return MultiplyForward(mine, rows, width, y);
    case OperationKind::kSlice:
      return SliceForward(operation, mine[0], rows, y);
    case OperationKind::kPool:
      return PoolForward(operation, mine, rows, y);
    case OperationKind::kInteraction:
      return InteractionForward(operation, mine, rows, y);
    case OperationKind::kFactorizationMachine:
      return FactorizationForward(operation, mine, rows, y);
    case OperationKind::kMatch:
      return MatchForward(operation, mine, rows, y);
    case OperationKind::kInnerProduct:
    case OperationKind::kCosine:
      return PairsForward(operation, mine, rows, y);
    default:
      return;
  }
}

void VectorLayerBackward(const Operation& operation, std::span<const LayerInput> inputs, const float* dy, int64_t first,
                         int64_t end, std::span<float* const> dx) {
  const std::vector<LayerInput> mine = From(inputs, first);
  const int64_t width = operation.output_width, rows = end - first;
  std::vector<float*> to(dx.begin(), dx.end());
  for (size_t k = 0; k < to.size(); ++k) to[k] += first * mine[k].width;
  dy += first * width;
  switch (operation.kind) {
    case OperationKind::kConcat:
      return ConcatBackward(mine, dy, rows, width, to);
    case OperationKind::kAdd:
      for (float* const gradient : to) std::copy_n(dy, rows * width, gradient);
      return;
    case OperationKind::kMultiply:
      return MultiplyBackward(mine, dy, rows, width, to);
    case OperationKind::kSlice:
      return SliceBackward(operation, mine[0], dy, rows, to[0]);
    case OperationKind::kPool:
      return PoolBackward(operation, mine, dy, rows, to);
    case OperationKind::kInteraction:
      return InteractionBackward(operation, mine, dy, rows, to);
    case OperationKind::kFactorizationMachine:
      return FactorizationBackward(operation, mine, dy, rows, to);
    case OperationKind::kMatch:
      return MatchBackward(operation, mine, dy, rows, to);
    case OperationKind::kInnerProduct:
    case OperationKind::kCosine:
      return PairsBackward(operation, mine, dy, rows, to);
    default:
      return;
  }
}

}  // namespace medley::worker
