#include "worker/coordinator/core/scores.h"

#include <algorithm>

namespace medley::worker {

void Scores::Add(const job::v1::Evaluated& part) {
  samples_ += part.samples();
  log_loss_sum_ += part.log_loss_sum();
  const auto merge = [](const auto& from, std::vector<int64_t>& to) {
    to.resize(std::max(to.size(), static_cast<size_t>(from.size())));
    for (int i = 0; i < from.size(); ++i) to[static_cast<size_t>(i)] += from[i];
  };
  merge(part.positives(), positives_);
  merge(part.negatives(), negatives_);
}

std::map<std::string, double> Scores::Metrics() const {
  if (samples_ == 0) return {};
  std::map<std::string, double> metrics;
  metrics["test_samples"] = static_cast<double>(samples_);
  metrics["log_loss"] = log_loss_sum_ / static_cast<double>(samples_);
  double below = 0;  // number of negatives with a lower score
  double wins = 0;
  double positives = 0;
  double right = 0;
  const size_t buckets = std::max(positives_.size(), negatives_.size());
  for (size_t i = 0; i < buckets; ++i) {
    const double p = i < positives_.size() ? static_cast<double>(positives_[i]) : 0;
    const double n = i < negatives_.size() ? static_cast<double>(negatives_[i]) : 0;
    wins += p * (below + n / 2);
    positives += p;
    right += 2 * i >= buckets ? p : n;
    below += n;
  }
  metrics["accuracy"] = right / static_cast<double>(samples_);
  if (positives > 0 && below > 0) metrics["auc"] = wins / positives / below;
  return metrics;
}

}  // namespace medley::worker
