#include "worker/scores/scores.h"

#include <algorithm>
#include <cmath>

namespace medley::worker {
namespace {

void AddCounts(const std::vector<int64_t>& from, std::vector<int64_t>& to) {
  to.resize(std::max(to.size(), from.size()));
  for (size_t i = 0; i < from.size(); ++i) to[i] += from[i];
}

int64_t At(const std::vector<int64_t>& counts, size_t i) { return i < counts.size() ? counts[i] : 0; }

// The mean of a score over the histograms that have one.
void AddMean(const ScoreSums& scores, const char* name, std::optional<double> (*score)(const ScoreHistogram&),
             std::map<std::string, double>& metrics) {
  double sum = 0;
  int known = 0;
  for (const ScoreHistogram& histogram : scores.histograms) {
    const std::optional<double> value = score(histogram);
    if (!value) continue;
    sum += *value;
    ++known;
  }
  if (known > 0) metrics[name] = sum / known;
}

// 1 - mean squared error / variance of the labels; nullopt without the sums or when the labels do not differ.
std::optional<double> R2(const std::map<std::string, double>& sums, double weight) {
  const auto error = sums.find("mse");
  const auto label = sums.find(kLabelSum);
  const auto square = sums.find(kLabelSquareSum);
  if (error == sums.end() || label == sums.end() || square == sums.end()) return std::nullopt;
  const double mean = label->second / weight;
  const double variance = square->second / weight - mean * mean;
  // Below this, the variance is the rounding error of the difference.
  if (!(variance > 1e-12 * std::max(square->second / weight, 1e-300))) return std::nullopt;
  return 1 - error->second / weight / variance;
}

}  // namespace

void ScoreSums::Add(const ScoreSums& other) {
  samples += other.samples;
  for (const auto& [name, sum] : other.sums) sums[name] += sum;
  AddCounts(other.confusion, confusion);
  weight += other.weight;
  AddCounts(other.classes.right, classes.right);
  AddCounts(other.classes.predicted, classes.predicted);
  AddCounts(other.classes.actual, classes.actual);
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

std::optional<double> PrAuc(const ScoreHistogram& histogram) {
  const size_t buckets = std::max(histogram.positives.size(), histogram.negatives.size());
  double positives = 0, negatives = 0, sum = 0;
  for (size_t i = buckets; i-- > 0;) {
    const auto p = static_cast<double>(At(histogram.positives, i));
    positives += p;
    negatives += static_cast<double>(At(histogram.negatives, i));
    if (p > 0) sum += p * positives / (positives + negatives);
  }
  if (positives == 0 || negatives == 0) return std::nullopt;
  return sum / positives;
}

std::optional<BestF1> FindBestF1(const ScoreHistogram& histogram) {
  const size_t buckets = std::max(histogram.positives.size(), histogram.negatives.size());
  double all = 0;
  for (const int64_t count : histogram.positives) all += static_cast<double>(count);
  if (all == 0) return std::nullopt;
  double positives = 0, negatives = 0;
  BestF1 best;
  for (size_t i = buckets; i-- > 0;) {
    positives += static_cast<double>(At(histogram.positives, i));
    negatives += static_cast<double>(At(histogram.negatives, i));
    const double f1 = 2 * positives / (all + positives + negatives);
    if (f1 > best.f1) best = {f1, static_cast<double>(i) / static_cast<double>(buckets)};
  }
  return best;
}

std::optional<double> CalibrationError(const ScoreHistogram& histogram) {
  constexpr size_t kRanges = 10;
  struct Range {
    double samples = 0, positives = 0, probabilities = 0;
  };
  std::vector<Range> ranges(kRanges);
  const size_t buckets = std::max(histogram.positives.size(), histogram.negatives.size());
  double samples = 0;
  for (size_t i = 0; i < buckets; ++i) {
    const auto p = static_cast<double>(At(histogram.positives, i));
    const double count = p + static_cast<double>(At(histogram.negatives, i));
    Range& range = ranges[i * kRanges / buckets];
    range.samples += count;
    range.positives += p;
    range.probabilities += count * (static_cast<double>(i) + 0.5) / static_cast<double>(buckets);
    samples += count;
  }
  if (samples == 0) return std::nullopt;
  double error = 0;
  for (const Range& range : ranges) error += std::abs(range.probabilities - range.positives);
  return error / samples;
}

std::optional<double> BalancedAccuracy(const ClassCounts& counts) {
  double sum = 0;
  int classes = 0;
  for (size_t i = 0; i < counts.actual.size(); ++i) {
    if (counts.actual[i] <= 0) continue;
    sum += static_cast<double>(At(counts.right, i)) / static_cast<double>(counts.actual[i]);
    ++classes;
  }
  return classes == 0 ? std::nullopt : std::optional(sum / classes);
}

std::optional<double> MacroF1(const ClassCounts& counts) {
  double sum = 0;
  int classes = 0;
  for (size_t i = 0; i < std::max(counts.actual.size(), counts.predicted.size()); ++i) {
    const auto both = static_cast<double>(At(counts.actual, i)) + static_cast<double>(At(counts.predicted, i));
    if (!(both > 0)) continue;
    sum += 2 * static_cast<double>(At(counts.right, i)) / both;
    ++classes;
  }
  return classes == 0 ? std::nullopt : std::optional(sum / classes);
}

std::vector<int64_t> BinaryConfusion(const ScoreHistogram& histogram, double threshold) {
  const size_t buckets = std::max(histogram.positives.size(), histogram.negatives.size());
  std::vector<int64_t> confusion(4);
  for (size_t i = 0; i < buckets; ++i) {
    const bool predicted = static_cast<double>(i) >= threshold * static_cast<double>(buckets);
    confusion[predicted ? 1 : 0] += At(histogram.negatives, i);
    confusion[predicted ? 3 : 2] += At(histogram.positives, i);
  }
  return confusion;
}

namespace {

// For a binary model whose predictions are 1 from the probability 0.5 on.
ClassCounts ClassesOf(const ScoreHistogram& histogram) {
  const std::vector<int64_t> confusion = BinaryConfusion(histogram, 0.5);
  return {.right = {confusion[0], confusion[3]},
          .predicted = {confusion[0] + confusion[2], confusion[1] + confusion[3]},
          .actual = {confusion[0] + confusion[1], confusion[2] + confusion[3]}};
}

}  // namespace

std::map<std::string, double> MetricsOf(const ScoreSums& scores) {
  if (scores.samples == 0) return {};
  const auto samples = static_cast<double>(scores.samples);
  const double weight = scores.weight > 0 ? scores.weight : samples;
  std::map<std::string, double> metrics = {{"test_samples", samples}};
  for (const auto& [name, sum] : scores.sums) {
    if (name != kLabelSum && name != kLabelSquareSum) metrics[name] = sum / weight;
  }
  if (const auto r2 = R2(scores.sums, weight)) metrics["r2"] = *r2;
  if (const auto f1 = MacroF1(scores.classes)) metrics["f1"] = *f1;
  if (const auto accuracy = BalancedAccuracy(scores.classes)) metrics["balancedAccuracy"] = *accuracy;
  if (const auto mse = metrics.find("mse"); mse != metrics.end()) metrics["rmse"] = std::sqrt(mse->second);
  AddMean(scores, "auc", Auc, metrics);
  AddMean(scores, "prAuc", PrAuc, metrics);
  if (scores.histograms.size() != 1) return metrics;  // several: of classes, or labels with a threshold each
  const ScoreHistogram& histogram = scores.histograms.front();
  if (const auto accuracy = BalancedAccuracy(ClassesOf(histogram))) metrics["balancedAccuracy"] = *accuracy;
  if (const auto best = FindBestF1(histogram)) {
    metrics["f1"] = best->f1;
    metrics["f1Threshold"] = best->threshold;
  }
  if (const auto error = CalibrationError(histogram)) metrics["calibrationError"] = *error;
  return metrics;
}

}  // namespace medley::worker
