#include "worker/scores/scorer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "worker/scores/losses.h"

namespace medley::worker {
namespace {

constexpr double kMostWeight = 1 << 26;  // in counts, so that their sums stay in range

size_t HistogramsOf(const Scoring& scoring) {
  if (scoring.task == model::Task::kRegression || scoring.task == model::Task::kOwnLoss ||
      scoring.classes() > Scorer::kMostHistograms)
    return 0;
  return static_cast<size_t>(scoring.classes());
}

}  // namespace

double Scoring::NumberOf(float output) const {
  const double number = mean + deviation * static_cast<double>(output);
  constexpr double kMostExponent = 700;
  return log ? std::expm1(std::min(number, kMostExponent)) : number;
}

Scorer::Scorer(const Scoring& scoring) : scoring_(scoring) {
  if (scoring.task == model::Task::kMultiClass && scoring.classes() <= kMostConfused) {
    scores_.confusion.resize(static_cast<size_t>(scoring.classes()) * static_cast<size_t>(scoring.classes()));
  }
  if (scoring.task == model::Task::kMultiClass) {
    for (std::vector<int64_t>* counts : {&scores_.classes.right, &scores_.classes.predicted, &scores_.classes.actual}) {
      counts->resize(static_cast<size_t>(scoring.classes()));
    }
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
  (positive ? to.positives : to.negatives)[static_cast<size_t>(bucket)] += units_;
}

void Scorer::Add(std::span<const float> logits, std::span<const float> labels, std::span<const float> weights) {
  const auto outputs = static_cast<size_t>(scoring_.outputs);
  const auto width = static_cast<size_t>(scoring_.labels());
  for (size_t sample = 0; sample * outputs < logits.size(); ++sample) {
    const std::span<const float> mine = logits.subspan(sample * outputs, outputs);
    const std::span<const float> label = labels.subspan(sample * width, width);
    if (!weights.empty()) {
      weight_ = static_cast<double>(weights[sample]);
      units_ = std::llround(std::min(weight_, kMostWeight) * kWeightUnits);
    }
    switch (scoring_.task) {
      case model::Task::kBinary:
      case model::Task::kMultiLabel:
        AddLabels(mine, label);
        break;
      case model::Task::kRegression:
        AddNumbers(mine, label);
        break;
      case model::Task::kOwnLoss:
        scores_.sums["loss"] += weight_ * static_cast<double>(mine[0]);
        break;
      case model::Task::kMultiClass:
        AddTokens(mine, label);
        continue;
    }
    CountSample();
  }
}

void Scorer::CountSample() {
  ++scores_.samples;
  scores_.weight += weight_;
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
  const double part = weight_ / static_cast<double>(logits.size());
  scores_.sums["logLoss"] += loss * part;
  scores_.sums["accuracy"] += right * part;
}

void Scorer::AddNumbers(std::span<const float> outputs, std::span<const float> labels) {
  const double part = weight_ / static_cast<double>(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    double error = scoring_.deviation * (static_cast<double>(outputs[i]) - static_cast<double>(labels[i]));
    double value = scoring_.deviation * static_cast<double>(labels[i]);  // around the mean of the training data
    if (scoring_.log) {
      error = scoring_.NumberOf(outputs[i]) - scoring_.NumberOf(labels[i]);
      value = scoring_.NumberOf(labels[i]) - scoring_.NumberOf(0);
    }
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
    CountSample();
  }
}

void Scorer::AddClass(std::span<const float> logits, size_t label) {
  const double all = LogSumExp(logits);
  const auto best = static_cast<size_t>(std::ranges::max_element(logits) - logits.begin());
  scores_.sums["logLoss"] += weight_ * (all - static_cast<double>(logits[label]));
  scores_.sums["accuracy"] += best == label ? weight_ : 0;
  scores_.classes.actual[label] += units_;
  scores_.classes.predicted[best] += units_;
  if (best == label) scores_.classes.right[label] += units_;
  if (scoring_.classes() > kTop) {
    const auto better = std::ranges::count_if(logits, [&](float logit) { return logit > logits[label]; });
    const auto equal = std::ranges::count(logits.first(label), logits[label]);
    scores_.sums["top5Accuracy"] += better + equal < kTop ? weight_ : 0;
  }
  if (scoring_.classes() <= kMostConfused) ++scores_.confusion[label * logits.size() + best];
  for (size_t i = 0; i < scores_.histograms.size(); ++i) {
    Count(i, std::exp(static_cast<double>(logits[i]) - all), i == label);
  }
}

}  // namespace medley::worker
