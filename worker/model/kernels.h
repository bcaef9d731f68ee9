// The arithmetic of layers on plain row-major matrices. Uses LibTorch's kernels but exposes none of its types.
//
// Allocates nothing but tensor handles and uses no autograd. Uses the calling thread, and the threads that it is given;
// the results do not depend on their number. Exceptions of LibTorch pass through; callers turn them into Status. The
// functions are thread-safe when their outputs and threads are disjoint.
#pragma once

#include <cstdint>
#include <span>

#include "worker/model/compute_threads.h"
#include "worker/model/graph.h"

namespace medley::worker {

// A view of row-major values, rows x columns; does not own them.
struct Matrix {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
};
struct MutableMatrix {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  operator Matrix() const { return {data, rows, columns}; }  // NOLINT: a view of the same
};

// y = activation(x w + bias); w is inputs x outputs.
void LinearForward(Matrix x, Matrix w, std::span<const float> bias, Activation activation, MutableMatrix y,
                   ComputeThreads& threads);
// out = the gradient of the activation's input, where y was its output and dy is the gradient of y. `out` may be dy.
void ActivationBackward(Activation activation, Matrix y, Matrix dy, MutableMatrix out);
// dw = (accumulate ? dw : 0) + x' dz;  db = (accumulate ? db : 0) + column sums of dz.
void LinearBackwardWeights(Matrix x, Matrix dz, bool accumulate, MutableMatrix dw, std::span<float> db,
                           ComputeThreads& threads);
// dx = dz w'
void LinearBackwardInput(Matrix dz, Matrix w, MutableMatrix dx, ComputeThreads& threads);

// For each sample: y = its rows concatenated (or their sum), then its numerics. `ids` are positions in `rows`.
void EmbeddingForward(std::span<const int32_t> ids, int fields, std::span<const float> numerics, Matrix rows,
                      bool sum_fields, MutableMatrix y);
// Adds the gradient of each row, which follows from dy, to row_gradients.
void EmbeddingBackward(std::span<const int32_t> ids, int fields, bool sum_fields, Matrix dy,
                       MutableMatrix row_gradients);

}  // namespace medley::worker
