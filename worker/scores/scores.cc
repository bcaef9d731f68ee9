#include "worker/scores/scores.h"

#include <algorithm>

namespace medley::worker {
namespace {

void AddCounts(const std::vector<int64_t>& from, std::vector<int64_t>& to) {
  to.resize(std::max(to.size(), from.size()));
  for (size_t i = 0; i < from.size(); ++i) to[i] += from[i];
}

int64_t At(const std::vector<int64_t>& counts, size_t i) { return i < counts.size() ? counts[i] : 0; }

// 1 - mean squared error / variance of the labels; nullopt without the sums or when the labels do not differ.
std::optional<double> R2(const std::map<std::string, double>& sums, double samples) {
  const auto error = sums.find("mse");
  const auto label = sums.find(kLabelSum);
  const auto square = sums.find(kLabelSquareSum);
  if (error == sums.end() || label == sums.end() || square == sums.end()) return std::nullopt;
  const double mean = label->second / samples;
  const double variance = square->second / samples - mean * mean;
  // Below this, the variance is the rounding error of the difference.
  if (!(variance > 1e-12 * std::max(square->second / samples, 1e-300))) return std::nullopt;
  return 1 - error->second / samples / variance;
}

}  // namespace

void ScoreSums::Add(const ScoreSums& other) {
  samples += other.samples;
  for (const auto& [name, sum] : other.sums) sums[name] += sum;
  histograms.resize(std::max(histograms.size(), other.histograms.size()));
  for (size_t i = 0; i < other.histograms.size(); ++i) {
    AddCounts(other.histograms[i].positives, histograms[i].positives);
    AddCounts(other.histograms[i].negatives, histograms[i].negatives);
  }
}

std::optional<double> Auc(const ScoreHistogram& histogram) {
  double below = 0;  // number of negatives with a smaller score
  double pairs = 0;  // number of pairs in which the positive has the larger score
  double count = 0;  // of positives
  const size_t buckets = std::max(histogram.positives.size(), histogram.negatives.size());
  for (size_t i = 0; i < buckets; ++i) {
    const auto p = static_cast<double>(At(histogram.positives, i));
    const auto n = static_cast<double>(At(histogram.negatives, i));
    pairs += p * (below + n / 2);
    below += n;
    count += p;
  }
  if (below == 0 || count == 0) return std::nullopt;
  return pairs / count / below;
}

std::map<std::string, double> MetricsOf(const ScoreSums& scores) {
  if (scores.samples == 0) return {};
  const auto samples = static_cast<double>(scores.samples);
  std::map<std::string, double> metrics = {{"test_samples", samples}};
  for (const auto& [name, sum] : scores.sums) {
    if (name != kLabelSum && name != kLabelSquareSum) metrics[name] = sum / samples;
  }
  if (const auto r2 = R2(scores.sums, samples)) metrics["r2"] = *r2;
  double sum = 0;
  int known = 0;
  for (const ScoreHistogram& histogram : scores.histograms) {
    const auto auc = Auc(histogram);
    if (!auc) continue;
    sum += *auc;
    ++known;
  }
  if (known > 0) metrics["auc"] = sum / known;
  return metrics;
}

}  // namespace medley::worker
