#include "cli/data/embedding_dim.h"

#include <algorithm>
#include <cmath>

namespace medley::cli {

int EmbeddingDim(int64_t values) {
  constexpr double kFactor = 1.6, kExponent = 0.56;
  constexpr long kLeast = 2, kMost = 50;
  const double dim = kFactor * std::pow(static_cast<double>(std::max<int64_t>(1, values)), kExponent);
  return static_cast<int>(std::clamp(std::lround(dim), kLeast, kMost));
}

int SharedEmbeddingDim(std::span<const int64_t> values) {
  constexpr int kUsual = 8, kMultiple = 4;
  if (values.empty()) return kUsual;
  return (EmbeddingDim(*std::ranges::max_element(values)) + kMultiple - 1) / kMultiple * kMultiple;
}

}  // namespace medley::cli
