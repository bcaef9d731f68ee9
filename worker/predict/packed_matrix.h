// A constant matrix in the order in which a product reads it, and its products with batches of rows.
//
// Single precision; sums are in another order than those of LibTorch and oneDNN, so results differ from the trainer's
// by rounding. The kernel is chosen at run time: AVX-512 or AVX2 when the processor has it. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace medley::worker {

class PackedMatrix {
 public:
  static constexpr int64_t kPanel = 32;  // columns that are computed together

  // `values` are inputs x outputs, row-major.
  PackedMatrix(std::span<const float> values, int64_t inputs, int64_t outputs);

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  // Floats of a row of results: outputs() rounded up, so that whole vectors can be written.
  int64_t stride() const { return (outputs_ + kPanel - 1) / kPanel * kPanel; }

  // y = bias + x * matrix, for `rows` rows of x that are `x_stride` floats apart; rows of y are stride() floats apart,
  // and those behind outputs() are written too. `bias` has stride() floats.
  void Multiply(const float* x, int64_t x_stride, int64_t rows, const float* bias, float* y) const;

 private:
  int64_t inputs_;
  int64_t outputs_;
  std::vector<float> panels_;  // panel, input, column of the panel
};

// y = bias + the sum of rows[i] * scales[i]; all have `width` floats, a multiple of PackedMatrix::kPanel.
void WeightedSum(std::span<const float* const> rows, std::span<const float> scales, const float* bias, int64_t width,
                 float* y);

}  // namespace medley::worker
