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

// Samples by class: those of the class that were predicted so, all that were predicted so, all of the class. Of a model
// of several classes.
struct ClassCounts {
  std::vector<int64_t> right;
  std::vector<int64_t> predicted;
  std::vector<int64_t> actual;
};

// Sums over samples with weights count each sample with its weight. Counts are whole numbers, so that the order of
// additions does not matter: then they are in units of 1 / kWeightUnits, and only their ratios mean something.
inline constexpr double kWeightUnits = 1 << 16;

struct ScoreSums {
  int64_t samples = 0;
  std::map<std::string, double> sums;      // over the samples, by the metric whose value is their mean
  std::vector<ScoreHistogram> histograms;  // of each class or label; AUC is the mean of theirs
  // For at most kMostConfused classes: how often class i was predicted as class j, at i * classes + j. Empty otherwise,
  // and in sums that a member has sent: it serves `medley evaluate`.
  std::vector<int64_t> confusion;
  double weight = 0;  // of all samples: the sum of their weights; 0: their number
  ClassCounts classes = {};

  void Add(const ScoreSums& other);
};

// Area under the ROC curve by the trapezoid rule (Fawcett, "An introduction to ROC analysis", 2006): pairs in the same
// bucket count one half. nullopt when positives or negatives are absent.
std::optional<double> Auc(const ScoreHistogram& histogram);

// Area under the curve of precision over recall, as the mean precision over the positives (average precision): samples
// in the same bucket count as equal. nullopt when there are no positives or no negatives.
std::optional<double> PrAuc(const ScoreHistogram& histogram);

// The largest harmonic mean of precision and recall, and the least probability that counts as positive for it.
struct BestF1 {
  double f1 = 0;
  double threshold = 0;
};
// nullopt when there are no positives.
std::optional<BestF1> FindBestF1(const ScoreHistogram& histogram);

// The expected calibration error: the mean over the samples of the difference between the mean probability and the rate
// of positives, in ten equal ranges of probabilities (Guo et al., "On calibration of modern neural networks", 2017).
// nullopt without samples.
std::optional<double> CalibrationError(const ScoreHistogram& histogram);

// Above this, probabilities are not to be read as such.
inline constexpr double kPoorCalibration = 0.05;

// The confusion of a binary model whose predictions are positive from `threshold` on: true negatives, false positives,
// false negatives, true positives.
std::vector<int64_t> BinaryConfusion(const ScoreHistogram& histogram, double threshold);

// The mean over the classes of the recall, and of the harmonic mean of precision and recall, 0 where that of a class is
// not defined (both as in scikit-learn). Classes that no sample has count for nothing, but in F1 if they are predicted.
// nullopt without counts.
std::optional<double> BalancedAccuracy(const ClassCounts& counts);
std::optional<double> MacroF1(const ClassCounts& counts);

// By name, for example "logLoss", and "test_samples". Empty when nothing was scored; a metric that has no value is
// absent, as "auc" when all labels are equal. The metrics that follow from histograms are as exact as their buckets.
std::map<std::string, double> MetricsOf(const ScoreSums& scores);

}  // namespace medley::worker
