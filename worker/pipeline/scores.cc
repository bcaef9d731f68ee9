#include "worker/pipeline/scores.h"

#include <algorithm>
#include <cmath>

#include "common/base/status.h"

namespace medley::worker {

void ScoreHistogram::Add(float logit, float label) {
  const double probability = 1 / (1 + std::exp(-static_cast<double>(logit)));
  const int bucket = std::clamp(static_cast<int>(probability * kBuckets), 0, kBuckets - 1);
  ++(label > 0.5F ? positives_ : negatives_)[static_cast<size_t>(bucket)];
  log_loss_sum_ += LogLoss(logit, label);
  ++samples_;
}

double Auc(std::span<const int64_t> positives, std::span<const int64_t> negatives) {
  MEDLEY_CHECK(positives.size() == negatives.size(), "the histograms must have the same size");
  double below = 0;  // number of negatives with a smaller score
  double pairs = 0;  // number of pairs in which the positive has the larger score
  double positive_count = 0;
  for (size_t i = 0; i < positives.size(); ++i) {
    const double p = static_cast<double>(positives[i]);
    const double n = static_cast<double>(negatives[i]);
    pairs += p * (below + n / 2);
    below += n;
    positive_count += p;
  }
  if (below == 0 || positive_count == 0) return 0.5;
  return pairs / (below * positive_count);
}

double LogLoss(float logit, float label) {
  // softplus(z) - label * z; the argument of exp is never positive, so it does not overflow.
  const double z = static_cast<double>(logit);
  return std::max(z, 0.0) - z * static_cast<double>(label) + std::log1p(std::exp(-std::abs(z)));
}

}  // namespace medley::worker
