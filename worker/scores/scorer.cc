#include "worker/scores/scorer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "worker/scores/losses.h"

namespace medley::worker {
namespace {

size_t HistogramsOf(const Scoring& scoring) {
  if (scoring.task == model::Task::kRegression || scoring.task == model::Task::kOwnLoss ||
      scoring.classes() > Scorer::kMostHistograms)
    return 0;
  return static_cast<size_t>(scoring.classes());
}

}  // namespace

Scorer::Scorer(const Scoring& scoring) : scoring_(scoring) {
  if (scoring.task == model::Task::kMultiClass && scoring.classes() <= kMostConfused) {
    scores_.confusion.resize(static_cast<size_t>(scoring.classes()) * static_cast<size_t>(scoring.classes()));
  }
  scores_.histograms.resize(HistogramsOf(scoring));
  if (scores_.histograms.empty()) return;
  // All histograms together are sent in one message, so several have fewer buckets each.
  const size_t buckets = std::min<size_t>(kMostBuckets, std::bit_floor(2 * kMostBuckets / scores_.histograms.size()));
  for (ScoreHistogram& histogram : scores_.histograms) {
    histogram.positives.resize(buckets);
    histogram.negatives.resize(buckets);
  }
}

void Scorer::Count(size_t histogram, double probability, bool positive) {
  if (histogram >= scores_.histograms.size()) return;
  ScoreHistogram& to = scores_.histograms[histogram];
  const auto buckets = static_cast<int>(to.positives.size());
  const int bucket = std::clamp(static_cast<int>(probability * buckets), 0, buckets - 1);
  ++(positive ? to.positives : to.negatives)[static_cast<size_t>(bucket)];
}

void Scorer::Add(std::span<const float> logits, std::span<const float> labels) {
  const auto outputs = static_cast<size_t>(scoring_.outputs);
  const auto width = static_cast<size_t>(scoring_.labels());
  for (size_t sample = 0; sample * outputs < logits.size(); ++sample) {
    const std::span<const float> mine = logits.subspan(sample * outputs, outputs);
    const std::span<const float> label = labels.subspan(sample * width, width);
    switch (scoring_.task) {
      case model::Task::kBinary:
      case model::Task::kMultiLabel:
        AddLabels(mine, label);
        break;
      case model::Task::kRegression:
        AddNumbers(mine, label);
        break;
      case model::Task::kOwnLoss:
        scores_.sums["loss"] += static_cast<double>(mine[0]);
        break;
      case model::Task::kMultiClass:
        AddTokens(mine, label);
        continue;
    }
    ++scores_.samples;
  }
}

void Scorer::AddLabels(std::span<const float> logits, std::span<const float> labels) {
  double loss = 0;
  double right = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool positive = labels[i] > 0.5F;
    loss += LogLoss(logits[i], labels[i]);
    right += (logits[i] >= 0) == positive ? 1 : 0;
    Count(i, 1 / (1 + std::exp(-static_cast<double>(logits[i]))), positive);
  }
  const auto count = static_cast<double>(logits.size());
  scores_.sums["logLoss"] += loss / count;
  scores_.sums["accuracy"] += right / count;
}

void Scorer::AddNumbers(std::span<const float> outputs, std::span<const float> labels) {
  const double part = 1.0 / static_cast<double>(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const double error = scoring_.deviation * (static_cast<double>(outputs[i]) - static_cast<double>(labels[i]));
    const double value = scoring_.deviation * static_cast<double>(labels[i]);  // around the mean of the training data
    scores_.sums["mse"] += part * error * error;
    scores_.sums["mae"] += part * std::abs(error);
    scores_.sums[kLabelSum] += part * value;
    scores_.sums[kLabelSquareSum] += part * value * value;
  }
}

// Each token counts as a sample.
void Scorer::AddTokens(std::span<const float> logits, std::span<const float> labels) {
  const auto classes = static_cast<size_t>(scoring_.classes());
  for (size_t t = 0; t < labels.size(); ++t) {
    if (labels[t] < 0) continue;
    AddClass(logits.subspan(t * classes, classes), static_cast<size_t>(labels[t]));
    ++scores_.samples;
  }
}

void Scorer::AddClass(std::span<const float> logits, size_t label) {
  const double all = LogSumExp(logits);
  const auto best = static_cast<size_t>(std::ranges::max_element(logits) - logits.begin());
  scores_.sums["logLoss"] += all - static_cast<double>(logits[label]);
  scores_.sums["accuracy"] += best == label ? 1 : 0;
  if (scoring_.classes() > kTop) {
    const auto better = std::ranges::count_if(logits, [&](float logit) { return logit > logits[label]; });
    const auto equal = std::ranges::count(logits.first(label), logits[label]);
    scores_.sums["top5Accuracy"] += better + equal < kTop ? 1 : 0;
  }
  if (scoring_.classes() <= kMostConfused) ++scores_.confusion[label * logits.size() + best];
  for (size_t i = 0; i < scores_.histograms.size(); ++i) {
    Count(i, std::exp(static_cast<double>(logits[i]) - all), i == label);
  }
}

}  // namespace medley::worker
