// The arithmetic of layers on plain row-major matrices: products by oneDNN, activations by Eigen. Needs no LibTorch,
// whose libraries cost each process that loads them half a second
// (docs/adr/0052-libtorch-only-where-it-computes.md).
//
// Allocates nothing. Uses the calling thread, and the threads that it is given; the results do not depend on their
// number. Throws std::runtime_error when oneDNN fails; callers turn it into Status. The functions are thread-safe when
// their outputs and threads are disjoint.
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
// db = (accumulate ? db : 0) + column sums of dz.
void BiasBackward(Matrix dz, bool accumulate, std::span<float> db);
// Both in one pass over the values, with the same bits; `out` is dz, and may be dy.
void ActivationAndBiasBackward(Activation activation, Matrix y, Matrix dy, MutableMatrix out, bool accumulate,
                               std::span<float> db);
// dw = (accumulate ? dw : 0) + x' dz
void LinearBackwardWeights(Matrix x, Matrix dz, bool accumulate, MutableMatrix dw, ComputeThreads& threads);
// dx = dz w'
void LinearBackwardInput(Matrix dz, Matrix w, MutableMatrix dx, ComputeThreads& threads);

// The ids of one embedding: those of `count` of the `fields` fields of every sample, as positions among the rows.
struct IdColumns {
  std::span<const int32_t> ids;  // samples x fields
  int fields = 0;
  int first = 0;
  int count = 0;
};

// For each sample: y = its rows concatenated (or their sum), then its numerics as far as y is wide enough.
void EmbeddingForward(const IdColumns& ids, std::span<const float> numerics, Matrix rows, bool sum_fields,
                      MutableMatrix y);
// Adds the gradient of each row, which follows from dy, to row_gradients.
void EmbeddingBackward(const IdColumns& ids, bool sum_fields, Matrix dy, MutableMatrix row_gradients);

// out = a + b and out = a b, element by element; `out` may be a or b.
void Add(std::span<const float> a, std::span<const float> b, std::span<float> out);
void Multiply(std::span<const float> a, std::span<const float> b, std::span<float> out);

}  // namespace medley::worker
