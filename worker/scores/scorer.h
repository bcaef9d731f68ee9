// Counts the predictions of a model against the labels. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "common/model/task.h"
#include "worker/scores/scores.h"

namespace medley::worker {

// What the outputs of a model mean.
struct Scoring {
  model::Task task = model::Task::kBinary;
  int outputs = 1;
  int tokens = 1;  // kMultiClass: labels of one sample, each of as many classes; a negative one counts for nothing
  double deviation = 1;  // kRegression: by which the labels are standardised
  double mean = 0;       // kRegression: of the labels
  bool log = false;      // kRegression: of log(1 + label), whose mean and deviation these are

  // The labels of one sample in batches.
  int labels() const {
    if (task == model::Task::kMultiClass) return tokens;
    return task == model::Task::kMultiLabel || task == model::Task::kRegression ? outputs : 1;
  }
  // kRegression: the label that an output means.
  double NumberOf(float output) const;
  int classes() const { return task == model::Task::kMultiClass ? outputs / tokens : outputs; }
};

class Scorer {
 public:
  static constexpr int kMostBuckets = 65536;
  static constexpr int kMostHistograms = 128;  // with more classes there is no AUC
  static constexpr int kMostConfused = 64;     // with more classes there is no confusion matrix
  static constexpr int kTop = 5;               // of the metric top5Accuracy, which models of more classes have

  explicit Scorer(const Scoring& scoring);
  // Samples x outputs logits, and samples x labels() labels in the form of BatchView.
  // `weights`: one for each sample, or none: 1.
  void Add(std::span<const float> logits, std::span<const float> labels, std::span<const float> weights = {});
  const ScoreSums& scores() const { return scores_; }

 private:
  void CountSample();
  void Count(size_t histogram, double probability, bool positive);
  void AddLabels(std::span<const float> logits, std::span<const float> labels);
  void AddNumbers(std::span<const float> outputs, std::span<const float> labels);
  void AddTokens(std::span<const float> logits, std::span<const float> labels);
  void AddClass(std::span<const float> logits, size_t label);

  const Scoring scoring_;
  double weight_ = 1;  // of the sample that is added
  int64_t units_ = 1;  // its weight in counts
  ScoreSums scores_;
};

}  // namespace medley::worker
