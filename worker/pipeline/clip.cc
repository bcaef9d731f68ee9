#include "worker/pipeline/clip.h"

#include <cmath>

namespace medley::worker {

double SquaredNorm(BlockCompute& block) {
  block.Gradients();  // completes them
  double squares = 0;
  for (const DenseParameter& parameter : block.Parameters()) {
    if (parameter.spec.role != ParameterRole::kTrained || parameter.spec.copy_of >= 0) continue;
    for (const float g : parameter.gradient) squares += static_cast<double>(g) * static_cast<double>(g);
  }
  return squares;
}

std::array<float, 2> InTwoFloats(double number) {
  const auto high = static_cast<float>(number);
  return {high, std::isfinite(high) ? static_cast<float>(number - static_cast<double>(high)) : 0.0F};
}

double FromTwoFloats(const std::array<float, 2>& floats) {
  return static_cast<double>(floats[0]) + static_cast<double>(floats[1]);
}

void ClipByNorm(BlockCompute& block, double norm, double squares) {
  constexpr double kTiny = 1e-6;
  const double factor = norm / (std::sqrt(squares) + kTiny);
  if (factor >= 1) return;
  block.Gradients();
  for (const DenseParameter& parameter : block.Parameters()) {
    if (parameter.spec.role != ParameterRole::kTrained) continue;
    for (float& g : parameter.gradient) g *= static_cast<float>(factor);
  }
}

}  // namespace medley::worker
