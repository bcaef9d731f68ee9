#include "worker/predict/packed_matrix.h"

#include <utility>

namespace medley::worker {
namespace {

template <size_t Bytes>
struct Floats {
  typedef float Vector __attribute__((vector_size(Bytes)));
  typedef float Unaligned __attribute__((vector_size(Bytes), aligned(4), may_alias));
};

template <size_t Bytes>
[[gnu::always_inline]] inline typename Floats<Bytes>::Vector& Load(const float* from,
                                                                   typename Floats<Bytes>::Vector& to) {
  to = *reinterpret_cast<const typename Floats<Bytes>::Unaligned*>(from);
  return to;
}

// Rows of x times two vectors of columns. Each element of R is a row; the results stay in registers.
template <size_t Bytes, int... R>
[[gnu::always_inline]] inline void Tile(std::integer_sequence<int, R...>, const float* x, int64_t x_stride,
                                        int64_t inputs, const float* panel, const float* bias, float* y,
                                        int64_t y_stride) {
  using Vector = typename Floats<Bytes>::Vector;
  using Unaligned = typename Floats<Bytes>::Unaligned;
  constexpr int64_t kLanes = Bytes / sizeof(float);
  Vector left[sizeof...(R)];
  Vector right[sizeof...(R)];
  ((Load<Bytes>(bias, left[R]), Load<Bytes>(bias + kLanes, right[R])), ...);
  for (int64_t k = 0; k < inputs; ++k) {
    Vector a, b;
    Load<Bytes>(panel + k * PackedMatrix::kPanel, a);
    Load<Bytes>(panel + k * PackedMatrix::kPanel + kLanes, b);
    ((left[R] += x[R * x_stride + k] * a, right[R] += x[R * x_stride + k] * b), ...);
  }
  ((*reinterpret_cast<Unaligned*>(y + R * y_stride) = left[R],
    *reinterpret_cast<Unaligned*>(y + R * y_stride + kLanes) = right[R]),
   ...);
}

struct Product {
  const float* x;
  int64_t x_stride;
  int64_t rows;
  int64_t inputs;
  const float* panels;
  int64_t panel_count;
  const float* bias;
  float* y;
  int64_t y_stride;
};

// `Rows` accumulators of two vectors each must fit into the registers.
template <size_t Bytes, int Rows>
[[gnu::always_inline]] inline void MultiplyPanels(const Product& p) {
  constexpr int64_t kStep = 2 * Bytes / sizeof(float);
  for (int64_t panel = 0; panel < p.panel_count; ++panel) {
    const float* const from = p.panels + panel * p.inputs * PackedMatrix::kPanel;
    for (int64_t part = 0; part < PackedMatrix::kPanel; part += kStep) {
      const int64_t column = panel * PackedMatrix::kPanel + part;
      int64_t row = 0;
      for (; row + Rows <= p.rows; row += Rows) {
        Tile<Bytes>(std::make_integer_sequence<int, Rows>(), p.x + row * p.x_stride, p.x_stride, p.inputs, from + part,
                    p.bias + column, p.y + row * p.y_stride + column, p.y_stride);
      }
      for (; row < p.rows; ++row) {
        Tile<Bytes>(std::make_integer_sequence<int, 1>(), p.x + row * p.x_stride, p.x_stride, p.inputs, from + part,
                    p.bias + column, p.y + row * p.y_stride + column, p.y_stride);
      }
    }
  }
}

struct Sum {
  std::span<const float* const> rows;
  const float* scales;
  const float* bias;
  int64_t width;
  float* y;
};

template <size_t Bytes>
[[gnu::always_inline]] inline void SumRows(const Sum& s) {
  using Vector = typename Floats<Bytes>::Vector;
  using Unaligned = typename Floats<Bytes>::Unaligned;
  constexpr int64_t kLanes = Bytes / sizeof(float);
  for (int64_t column = 0; column < s.width; column += 2 * kLanes) {
    Vector left, right, a, b;
    Load<Bytes>(s.bias + column, left);
    Load<Bytes>(s.bias + column + kLanes, right);
    for (size_t i = 0; i < s.rows.size(); ++i) {
      left += s.scales[i] * Load<Bytes>(s.rows[i] + column, a);
      right += s.scales[i] * Load<Bytes>(s.rows[i] + column + kLanes, b);
    }
    *reinterpret_cast<Unaligned*>(s.y + column) = left;
    *reinterpret_cast<Unaligned*>(s.y + column + kLanes) = right;
  }
}

void MultiplyBaseline(const Product& p) { MultiplyPanels<16, 4>(p); }
void SumBaseline(const Sum& s) { SumRows<16>(s); }

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void MultiplyAvx2(const Product& p) { MultiplyPanels<32, 6>(p); }
[[gnu::target("avx512f")]] void MultiplyAvx512(const Product& p) { MultiplyPanels<64, 12>(p); }
[[gnu::target("avx2,fma")]] void SumAvx2(const Sum& s) { SumRows<32>(s); }
[[gnu::target("avx512f")]] void SumAvx512(const Sum& s) { SumRows<64>(s); }

bool HasAvx2() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0; }
bool HasAvx512() { return __builtin_cpu_supports("avx512f") != 0; }
#else
void MultiplyAvx2(const Product& p) { MultiplyBaseline(p); }
void MultiplyAvx512(const Product& p) { MultiplyBaseline(p); }
void SumAvx2(const Sum& s) { SumBaseline(s); }
void SumAvx512(const Sum& s) { SumBaseline(s); }
bool HasAvx2() { return false; }
bool HasAvx512() { return false; }
#endif

}  // namespace

PackedMatrix::PackedMatrix(std::span<const float> values, int64_t inputs, int64_t outputs)
    : inputs_(inputs), outputs_(outputs) {
  panels_.resize(static_cast<size_t>(stride() * inputs));
  for (int64_t input = 0; input < inputs; ++input) {
    for (int64_t output = 0; output < outputs; ++output) {
      const int64_t at = (output / kPanel * inputs + input) * kPanel + output % kPanel;
      panels_[static_cast<size_t>(at)] = values[static_cast<size_t>(input * outputs + output)];
    }
  }
}

void PackedMatrix::Multiply(const float* x, int64_t x_stride, int64_t rows, const float* bias, float* y) const {
  const Product product{x, x_stride, rows, inputs_, panels_.data(), stride() / kPanel, bias, y, stride()};
  const auto multiply = HasAvx512() ? MultiplyAvx512 : HasAvx2() ? MultiplyAvx2 : MultiplyBaseline;
  multiply(product);
}

void WeightedSum(std::span<const float* const> rows, std::span<const float> scales, const float* bias, int64_t width,
                 float* y) {
  const auto sum = HasAvx512() ? SumAvx512 : HasAvx2() ? SumAvx2 : SumBaseline;
  sum({rows, scales.data(), bias, width, y});
}

}  // namespace medley::worker
