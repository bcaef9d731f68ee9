#include "worker/pipeline/clip.h"

#include <algorithm>
#include <cmath>

namespace medley::worker {

std::array<float, 2> InTwoFloats(double number) {
  const auto high = static_cast<float>(number);
  return {high, std::isfinite(high) ? static_cast<float>(number - static_cast<double>(high)) : 0.0F};
}

double FromTwoFloats(const std::array<float, 2>& floats) {
  return static_cast<double>(floats[0]) + static_cast<double>(floats[1]);
}

double ClipFactor(double norm, double squares) {
  constexpr double kTiny = 1e-6;
  const double factor = norm / (std::sqrt(squares) + kTiny);
  return factor >= 1 ? 1 : factor;  // also what is no number: the gradients become it
}

}  // namespace medley::worker
