#include "worker/scores/losses.h"

#include <algorithm>
#include <cmath>

namespace medley::worker {

double LogLoss(float logit, float label) {
  // softplus(z) - label * z; the argument of exp is never positive, so it does not overflow.
  const double z = static_cast<double>(logit);
  return std::max(z, 0.0) - z * static_cast<double>(label) + std::log1p(std::exp(-std::abs(z)));
}

double LogSumExp(std::span<const float> logits) {
  const double most = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return most + std::log(sum);
}

}  // namespace medley::worker
