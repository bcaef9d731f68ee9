// Computes AUC from histograms and log loss from a sum, so that replicas' parts can be added. Pure values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace medley::worker {

class ScoreHistogram {
 public:
  static constexpr int kBuckets = 65536;  // equal width over [0, 1]

  ScoreHistogram() : positives_(kBuckets), negatives_(kBuckets) {}
  // One sample; `logit` is the score before the sigmoid, `label` 0 or 1.
  void Add(float logit, float label);

  double log_loss_sum() const { return log_loss_sum_; }
  int64_t samples() const { return samples_; }
  const std::vector<int64_t>& positives() const { return positives_; }
  const std::vector<int64_t>& negatives() const { return negatives_; }

 private:
  std::vector<int64_t> positives_;
  std::vector<int64_t> negatives_;
  double log_loss_sum_ = 0;
  int64_t samples_ = 0;
};

// Area under the ROC curve; pairs within a bucket count half. 0.5 when a class is absent. The sizes must be equal.
double Auc(std::span<const int64_t> positives, std::span<const int64_t> negatives);

// -log of the probability that sigmoid(logit) gives to `label`; numerically stable for any logit.
double LogLoss(float logit, float label);

}  // namespace medley::worker
