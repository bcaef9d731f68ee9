// The layers without parameters that compute with the vectors of a sample: sums, products, pools, interactions, and
// their gradients. For training and for predictions. Needs neither oneDNN nor LibTorch.
//
// The rows of a batch are independent of one another, so callers divide them among threads as they like: the results
// are the same. Pure; allocates a few vectors of a sample's size a call. Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "worker/model/graph.h"

namespace medley::worker {

// An input of a layer: row-major, `stride` floats from row to row.
struct LayerInput {
  const float* data = nullptr;
  int64_t width = 0;
  int64_t stride = 0;
};

// Arithmetic operations of the forward pass for a sample, where a multiplication and an addition are two. Also for
// kCross. 0: it only copies.
double VectorLayerFlops(const Operation& operation);

// Floats of a sample that an operation keeps from its forward to its backward pass.
double KeptFloats(const Operation& operation);

// Sets rows [first, end) of the outputs. `y` is that of row 0; operation.output_width floats from row to row.
void VectorLayerForward(const Operation& operation, std::span<const LayerInput> inputs, int64_t first, int64_t end,
                        float* y);

// Sets rows [first, end) of dx[k] to the gradient of input k, where dy is that of the outputs. All are those of row 0,
// and have no gaps between rows.
void VectorLayerBackward(const Operation& operation, std::span<const LayerInput> inputs, const float* dy, int64_t first,
                         int64_t end, std::span<float* const> dx);

}  // namespace medley::worker
