#include "worker/model/kernels.h"

#include <oneapi/dnnl/dnnl.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

extern "C" void omp_set_num_threads(int threads);  // of OpenMP, whose header clang lacks

namespace medley::worker {
namespace {

using Values = Eigen::Map<Eigen::ArrayXf>;
using ConstValues = Eigen::Map<const Eigen::ArrayXf>;

Values ValuesOf(MutableMatrix matrix) { return {matrix.data, matrix.rows * matrix.columns}; }
ConstValues ValuesOf(Matrix matrix) { return {matrix.data, matrix.rows * matrix.columns}; }

// oneDNN divides work among OpenMP threads, which spin while they wait: under a CPU limit they are slower than one
// thread. ComputeThreads divides the work instead. The number of OpenMP threads is a property of the calling thread, so
// every thread sets it once.
void UseThisThreadOnly() {
  thread_local const bool set = [] {
    omp_set_num_threads(1);
    return true;
  }();
  static_cast<void>(set);
}

// The bits of a row of a product depend on how many rows oneDNN's kernels for AVX2 get in a call; those of its kernels
// for AVX-512 do not. So the former get the same blocks of rows however many threads there are.
bool DependsOnRows() {
  static const bool depends = (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) != dnnl_cpu_isa_avx512_core;
  return depends;
}
constexpr int64_t kBlock = 48;
int64_t RowsTogether() { return DependsOnRows() ? kBlock : ComputeThreads::kRowsTogether; }

// Rows [first, end) of the row-major c = beta c + op(a) op(b). With `transpose_a`, a's rows are the inner dimension.
// oneDNN compiles the kernel for the processor of this machine.
void MultiplyRows(Matrix a, bool transpose_a, Matrix b, bool transpose_b, float beta, MutableMatrix c, int64_t first,
                  int64_t end) {
  UseThisThreadOnly();
  const int64_t inner = transpose_a ? a.rows : a.columns;
  for (int64_t next = first; next < end;) {
    const int64_t rows = DependsOnRows() ? std::min(end - next, kBlock) : end - next;
    const float* from = a.data + (transpose_a ? next : next * a.columns);
    const dnnl_status_t status =
        dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', rows, c.columns, inner, 1, from, a.columns, b.data,
                   b.columns, beta, c.data + next * c.columns, c.columns);
    if (status != dnnl_success) throw std::runtime_error("oneDNN failed to compute a matrix product");
    next += rows;
  }
}

// NaN stays NaN in all of them, so that a broken model is noticed.
void Activate(Activation activation, MutableMatrix y) {
  Values values = ValuesOf(y);
  switch (activation) {
    case Activation::kRelu:
      for (float& value : values) value = value < 0 ? 0 : value;  // Eigen's select takes one at a time
      break;
    case Activation::kSigmoid:
      values = values.logistic();
      break;
    case Activation::kTanh:
      values = values.tanh();
      break;
    case Activation::kNone:
      break;
  }
}

void AddTo(float* to, const float* values, size_t size) {
#pragma GCC ivdep
  for (size_t i = 0; i < size; ++i) to[i] += values[i];
}

// `dz` may be `dy`.
void ReluAndBiasRow(const float* y, const float* dy, float* dz, float* db, size_t size) {
#pragma GCC ivdep
  for (size_t i = 0; i < size; ++i) {
    const float gradient = dy[i];  // read in any case: a read that depends on a branch is not vectorised
    const float value = y[i] <= 0 ? 0 : gradient;
    dz[i] = value;
    db[i] += value;
  }
}

}  // namespace

void LinearForward(Matrix x, Matrix w, std::span<const float> bias, Activation activation, MutableMatrix y,
                   ComputeThreads& threads) {
  threads.ForEach(
      y.rows, 2 * x.columns * y.columns,
      [&](int64_t first, int64_t end) {
        for (int64_t row = first; row < end; ++row) std::ranges::copy(bias, y.data + row * y.columns);
        MultiplyRows(x, false, w, false, 1, y, first, end);
        Activate(activation, {y.data + first * y.columns, end - first, y.columns});
      },
      RowsTogether());
}

void ActivationBackward(Activation activation, Matrix y, Matrix dy, MutableMatrix out) {
  const ConstValues outputs = ValuesOf(y), gradients = ValuesOf(dy);
  Values to = ValuesOf(out);
  switch (activation) {
    case Activation::kRelu:
      for (Eigen::Index i = 0; i < to.size(); ++i) {
        const float gradient = gradients[i];  // read in any case: a read that depends on a branch is not vectorised
        to[i] = outputs[i] <= 0 ? 0 : gradient;
      }
      break;
    case Activation::kSigmoid:
      to = gradients * (1 - outputs) * outputs;
      break;
    case Activation::kTanh:
      to = gradients * (1 - outputs * outputs);
      break;
    case Activation::kNone:
      if (out.data != dy.data) {
        std::memcpy(out.data, dy.data, static_cast<size_t>(dy.rows * dy.columns) * sizeof(float));
      }
      break;
  }
}

void LinearBackwardWeights(Matrix x, Matrix dz, bool accumulate, MutableMatrix dw, ComputeThreads& threads) {
  threads.ForEach(
      dw.rows, 2 * x.rows * dw.columns,
      [&](int64_t first, int64_t end) { MultiplyRows(x, true, dz, false, accumulate ? 1 : 0, dw, first, end); },
      RowsTogether());
}

void BiasBackward(Matrix dz, bool accumulate, std::span<float> db) {
  if (!accumulate) std::ranges::fill(db, 0.0F);
  for (int64_t row = 0; row < dz.rows; ++row) AddTo(db.data(), dz.data + row * dz.columns, db.size());
}

void ActivationAndBiasBackward(Activation activation, Matrix y, Matrix dy, MutableMatrix out, bool accumulate,
                               std::span<float> db) {
  if (!accumulate) std::ranges::fill(db, 0.0F);
  for (int64_t row = 0; row < y.rows; ++row) {
    const int64_t at = row * y.columns;
    float* const dz = out.data + at;
    if (activation == Activation::kRelu) {
      ReluAndBiasRow(y.data + at, dy.data + at, dz, db.data(), db.size());
      continue;
    }
    ActivationBackward(activation, {y.data + at, 1, y.columns}, {dy.data + at, 1, y.columns}, {dz, 1, y.columns});
    AddTo(db.data(), dz, db.size());
  }
}

void LinearBackwardInput(Matrix dz, Matrix w, MutableMatrix dx, ComputeThreads& threads) {
  threads.ForEach(
      dx.rows, 2 * dz.columns * dx.columns,
      [&](int64_t first, int64_t end) { MultiplyRows(dz, false, w, true, 0, dx, first, end); }, RowsTogether());
}

void EmbeddingForward(const IdColumns& ids, std::span<const float> numerics, Matrix rows, bool sum_fields,
                      MutableMatrix y) {
  const size_t dim = static_cast<size_t>(rows.columns);
  const size_t embedded = (sum_fields ? 1 : static_cast<size_t>(ids.count)) * dim;
  const size_t tail = static_cast<size_t>(y.columns) - embedded;
  for (int64_t sample = 0; sample < y.rows; ++sample) {
    const int32_t* id = ids.ids.data() + sample * ids.fields + ids.first;
    float* out = y.data + sample * y.columns;
    if (sum_fields) std::fill_n(out, dim, 0.0F);
    for (int field = 0; field < ids.count; ++field) {
      const float* row = rows.data + static_cast<size_t>(*id++) * dim;
      if (sum_fields) {
        for (size_t i = 0; i < dim; ++i) out[i] += row[i];
      } else {
        std::memcpy(out + static_cast<size_t>(field) * dim, row, dim * sizeof(float));
      }
    }
    std::copy_n(numerics.data() + static_cast<size_t>(sample) * tail, tail, out + embedded);
  }
}

void EmbeddingBackward(const IdColumns& ids, bool sum_fields, Matrix dy, MutableMatrix row_gradients) {
  const size_t dim = static_cast<size_t>(row_gradients.columns);
  for (int64_t sample = 0; sample < dy.rows; ++sample) {
    const int32_t* id = ids.ids.data() + sample * ids.fields + ids.first;
    const float* gradient = dy.data + sample * dy.columns;
    for (int field = 0; field < ids.count; ++field) {
      float* row = row_gradients.data + static_cast<size_t>(*id++) * dim;
      const float* from = sum_fields ? gradient : gradient + static_cast<size_t>(field) * dim;
      for (size_t i = 0; i < dim; ++i) row[i] += from[i];
    }
  }
}

void Add(std::span<const float> a, std::span<const float> b, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = a[i] + b[i];
}

void Multiply(std::span<const float> a, std::span<const float> b, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = a[i] * b[i];
}

}  // namespace medley::worker
