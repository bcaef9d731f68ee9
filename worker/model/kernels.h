// The arithmetic of layers on plain row-major matrices; LibTorch's kernels inside, none of its
// types outside.
//
// No allocation beyond tensor handles, no autograd. They use the calling thread only. Exceptions of
// LibTorch pass through: callers turn them into Status. Functions are thread-safe on disjoint
// outputs.
#pragma once

#include <cstdint>
#include <span>

#include "worker/model/graph.h"

namespace medley::worker {

// Row-major rows x columns; does not own.
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
void LinearForward(Matrix x, Matrix w, std::span<const float> bias, Activation activation, MutableMatrix y);
// out = gradient of the input of the activation whose output was y and whose output gradient is dy.
// `out` may be dy.
void ActivationBackward(Activation activation, Matrix y, Matrix dy, MutableMatrix out);
// dw = (accumulate ? dw : 0) + x' dz;  db likewise with the column sums of dz.
void LinearBackwardWeights(Matrix x, Matrix dz, bool accumulate, MutableMatrix dw, std::span<float> db);
// dx = dz w'
void LinearBackwardInput(Matrix dz, Matrix w, MutableMatrix dx);

// A sample's ids (positions of rows) and numerics -> rows side by side (or their sum), then the
// numerics.
void EmbeddingForward(std::span<const int32_t> ids, int fields, std::span<const float> numerics, Matrix rows,
                      bool sum_fields, MutableMatrix y);
// row_gradients += what dy says about each row.
void EmbeddingBackward(std::span<const int32_t> ids, int fields, bool sum_fields, Matrix dy,
                       MutableMatrix row_gradients);

// dlogits = (sigmoid(logit) - label) * scale; returns the sum of the log losses.
double LogisticLoss(std::span<const float> logits, std::span<const float> labels, float scale,
                    std::span<float> dlogits);

}  // namespace medley::worker
