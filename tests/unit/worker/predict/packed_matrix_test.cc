#include "worker/predict/packed_matrix.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace medley::worker {
namespace {

std::vector<float> Numbers(int64_t count, uint64_t seed) {
  base::Rng rng(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& x : values) x = static_cast<float>(rng.Uniform(-1, 1));
  return values;
}

TEST(PackedMatrixTest, MultipliesAnySizes) {
  for (const int64_t inputs : {1, 5, 64}) {
    for (const int64_t outputs : {1, 31, 32, 70}) {
      for (const int64_t rows : {1, 11, 12, 30}) {
        const std::vector<float> w = Numbers(inputs * outputs, 1);
        const int64_t x_stride = inputs + 3;
        const std::vector<float> x = Numbers(rows * x_stride, 2);
        const PackedMatrix matrix(w, inputs, outputs);
        std::vector<float> bias = Numbers(outputs, 3);
        bias.resize(static_cast<size_t>(matrix.stride()));
        std::vector<float> y(static_cast<size_t>(rows * matrix.stride()));
        matrix.Multiply(x.data(), x_stride, rows, bias.data(), y.data());
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t column = 0; column < outputs; ++column) {
            double sum = static_cast<double>(bias[static_cast<size_t>(column)]);
            for (int64_t k = 0; k < inputs; ++k) {
              sum += static_cast<double>(x[static_cast<size_t>(row * x_stride + k)]) *
                     static_cast<double>(w[static_cast<size_t>(k * outputs + column)]);
            }
            ASSERT_NEAR(y[static_cast<size_t>(row * matrix.stride() + column)], sum, 1e-5)
                << inputs << " x " << outputs << ", row " << row << " of " << rows << ", column " << column;
          }
        }
      }
    }
  }
}

TEST(PackedMatrixTest, AddsRowsWithTheirScales) {
  const std::vector<float> a = Numbers(64, 1);
  const std::vector<float> b = Numbers(64, 2);
  const std::vector<float> bias = Numbers(64, 3);
  const float* const rows[] = {a.data(), b.data()};
  const float scales[] = {1, -0.5};
  std::vector<float> y(64);
  WeightedSum(rows, scales, bias.data(), 64, y.data());
  for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], bias[i] + a[i] - b[i] / 2, 1e-6) << i;
}

}  // namespace
}  // namespace medley::worker
