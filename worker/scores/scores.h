// What an evaluation has counted, and the metrics that follow. The counts of several members can be added. Pure values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace medley::worker {

// Names in ScoreSums::sums that are no metrics: moments of the label, from which R2 follows.
inline constexpr char kLabelSum[] = "label";
inline constexpr char kLabelSquareSum[] = "label_square";

// How many samples of a class, and how many others, have a score in each bucket; buckets have equal width over [0, 1].
struct ScoreHistogram {
  std::vector<int64_t> positives;
  std::vector<int64_t> negatives;
};

struct ScoreSums {
  int64_t samples = 0;
  std::map<std::string, double> sums;      // over the samples, by the metric whose value is their mean
  std::vector<ScoreHistogram> histograms;  // of each class or label; AUC is the mean of theirs

  void Add(const ScoreSums& other);
};

// Area under the ROC curve by the trapezoid rule (Fawcett, "An introduction to ROC analysis", 2006): pairs in the same
// bucket count one half. nullopt when positives or negatives are absent.
std::optional<double> Auc(const ScoreHistogram& histogram);

// By name, for example "logLoss", and "test_samples". Empty when nothing was scored; without "auc" while no histogram
// has one, and without "r2" while all labels are equal.
std::map<std::string, double> MetricsOf(const ScoreSums& scores);

}  // namespace medley::worker
