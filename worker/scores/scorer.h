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

  // The labels of one sample in batches.
  int labels() const {
    if (task == model::Task::kMultiClass) return tokens;
    return task == model::Task::kMultiLabel || task == model::Task::kRegression ? outputs : 1;
  }
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
  void Add(std::span<const float> logits, std::span<const float> labels);
  const ScoreSums& scores() const { return scores_; }

 private:
  void Count(size_t histogram, double probability, bool positive);
  void AddLabels(std::span<const float> logits, std::span<const float> labels);
  void AddNumbers(std::span<const float> outputs, std::span<const float> labels);
  void AddTokens(std::span<const float> logits, std::span<const float> labels);
  void AddClass(std::span<const float> logits, size_t label);

  const Scoring scoring_;
  ScoreSums scores_;
};

}  // namespace medley::worker
