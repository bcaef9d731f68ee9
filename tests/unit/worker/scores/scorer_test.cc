#include "worker/scores/scorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "common/base/rng.h"

namespace medley::worker {
namespace {

using model::Task;

std::map<std::string, double> Score(const Scoring& scoring, const std::vector<float>& logits,
                                    const std::vector<float>& labels) {
  Scorer scorer(scoring);
  scorer.Add(logits, labels);
  return MetricsOf(scorer.scores());
}

TEST(ScorerTest, BinaryScoresOfPerfectReversedAndConstantModels) {
  std::vector<float> labels;
  std::vector<float> perfect;
  std::vector<float> reversed;
  for (int i = 0; i < 100; ++i) {
    labels.push_back(i < 30 ? 1 : 0);
    perfect.push_back(labels.back() * 4 - 2);
    reversed.push_back(2 - labels.back() * 4);
  }
  EXPECT_EQ(Score({}, perfect, labels).at("auc"), 1);
  EXPECT_EQ(Score({}, perfect, labels).at("accuracy"), 1);
  EXPECT_EQ(Score({}, reversed, labels).at("auc"), 0);
  EXPECT_EQ(Score({}, reversed, labels).at("accuracy"), 0);
  const auto constant = Score({}, std::vector<float>(100, 0.3F), labels);
  EXPECT_EQ(constant.at("auc"), 0.5);
  EXPECT_DOUBLE_EQ(constant.at("accuracy"), 0.3);
  EXPECT_EQ(constant.at("test_samples"), 100);
}

TEST(ScorerTest, AucAgreesWithThePairwiseDefinition) {
  base::Rng rng(2);
  std::vector<float> logits;
  std::vector<float> labels;
  std::array<std::vector<float>, 2> by_label;
  for (int i = 0; i < 600; ++i) {
    labels.push_back(static_cast<float>(rng.Below(2)));
    logits.push_back(static_cast<float>(rng.Uniform(-3, 3)) + labels.back());
    by_label[static_cast<size_t>(labels.back())].push_back(logits.back());
  }
  double won = 0;
  for (const float p : by_label[1]) {
    for (const float n : by_label[0]) won += p > n ? 1 : 0;
  }
  const double pairs = static_cast<double>(by_label[1].size()) * static_cast<double>(by_label[0].size());
  EXPECT_NEAR(Score({}, logits, labels).at("auc"), won / pairs, 1e-3);
}

TEST(ScorerTest, ErrorsOfARegressionAreInTheUnitOfTheLabel) {
  // Labels 10, 20, 30 with deviation 10 around 20; predictions 15, 20, 20.
  const Scoring scoring{.task = Task::kRegression, .deviation = 10};
  const auto metrics = Score(scoring, {-0.5F, 0, 0}, {-1, 0, 1});
  EXPECT_NEAR(metrics.at("mse"), (25 + 0 + 100) / 3.0, 1e-9);
  EXPECT_NEAR(metrics.at("mae"), 5, 1e-9);
  EXPECT_NEAR(metrics.at("r2"), 1 - 125 / 200.0, 1e-9);
  EXPECT_NEAR(metrics.at("rmse"), std::sqrt(125 / 3.0), 1e-9);
  EXPECT_EQ(metrics.size(), 5U);
}

TEST(ScorerTest, ClassesAreScoredOneAgainstTheOthers) {
  const Scoring scoring{.task = Task::kMultiClass, .outputs = 3};
  const auto metrics = Score(scoring, {5, 0, 0, 0, 5, 0, 0, 0, 5, 5, 0, 0}, {0, 1, 2, 2});
  const double right = std::log(std::exp(5.0) + 2) - 5;
  EXPECT_NEAR(metrics.at("logLoss"), (3 * right + right + 5) / 4, 1e-9);
  EXPECT_EQ(metrics.at("accuracy"), 0.75);
  // Class 0: 3 pairs of which one is a tie; class 1: all pairs; class 2: 4 pairs of which two are ties.
  EXPECT_NEAR(metrics.at("auc"), (2.5 / 3 + 1 + 3.0 / 4) / 3, 1e-9);
}

// Against the definitions, on samples with distinct scores.
TEST(ScorerTest, PrecisionAndRecallAgreeWithTheirDefinitions) {
  base::Rng rng(5);
  std::vector<std::pair<float, bool>> samples;  // logit, positive
  for (int i = 0; i < 400; ++i) {
    const bool positive = rng.Uniform() < 0.1;
    samples.emplace_back(static_cast<float>(rng.Uniform(-2, 2)) + (positive ? 1.5F : 0), positive);
  }
  std::ranges::sort(samples, std::greater());
  std::vector<float> logits, labels;
  double found = 0, precisions = 0, positives = 0;
  for (const auto& [logit, positive] : samples) positives += positive ? 1 : 0;
  double best = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    logits.push_back(samples[i].first);
    labels.push_back(samples[i].second ? 1 : 0);
    found += samples[i].second ? 1 : 0;
    if (samples[i].second) precisions += found / static_cast<double>(i + 1);
    best = std::max(best, 2 * found / (positives + static_cast<double>(i + 1)));
  }
  const auto metrics = Score({}, logits, labels);
  EXPECT_NEAR(metrics.at("prAuc"), precisions / positives, 2e-3);
  EXPECT_NEAR(metrics.at("f1"), best, 2e-3);
  int64_t right = 0, predicted = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (1 / (1 + std::exp(-static_cast<double>(logits[i]))) < metrics.at("f1Threshold")) continue;
    ++predicted;
    right += labels[i] > 0.5F ? 1 : 0;
  }
  EXPECT_NEAR(2.0 * static_cast<double>(right) / (positives + static_cast<double>(predicted)), metrics.at("f1"), 1e-9)
      << "the threshold is that of the best F1";
}

// A model that is right about probabilities, and one whose classes were weighted: all odds are 9 times too high.
TEST(ScorerTest, CalibrationTellsShiftedProbabilities) {
  base::Rng rng(6);
  std::vector<float> logits, shifted, labels;
  for (int i = 0; i < 20'000; ++i) {
    const double logit = rng.Uniform(-4, 0);
    logits.push_back(static_cast<float>(logit));
    shifted.push_back(static_cast<float>(logit + std::log(9)));
    labels.push_back(rng.Uniform() < 1 / (1 + std::exp(-logit)) ? 1 : 0);
  }
  const auto good = Score({}, logits, labels);
  const auto bad = Score({}, shifted, labels);
  EXPECT_LT(good.at("calibrationError"), 0.02);
  EXPECT_GT(bad.at("calibrationError"), 0.2);
  EXPECT_GT(bad.at("calibrationError"), kPoorCalibration);
  EXPECT_NEAR(bad.at("auc"), good.at("auc"), 1e-3) << "the order is the same";
  EXPECT_NEAR(bad.at("f1"), good.at("f1"), 1e-3) << "at another threshold";
}

TEST(ScorerTest, TheConfusionCountsWhatWasTakenForWhat) {
  Scorer scorer({.task = Task::kMultiClass, .outputs = 3});
  scorer.Add(std::vector<float>{5, 0, 0, 0, 5, 0, 0, 0, 5, 5, 0, 0}, std::vector<float>{0, 1, 2, 2});
  EXPECT_EQ(scorer.scores().confusion, (std::vector<int64_t>{1, 0, 0, 0, 1, 0, 1, 0, 1}));
  EXPECT_TRUE(Scorer({.task = Task::kMultiClass, .outputs = 65}).scores().confusion.empty());
  EXPECT_EQ(BinaryConfusion({{1, 2, 0, 7}, {9, 3, 2, 1}}, 0.5), (std::vector<int64_t>{12, 3, 3, 7}));
}

TEST(ScorerTest, TheLabelIsAmongTheFirstFive) {
  std::vector<float> logits(8);
  for (size_t i = 0; i < 8; ++i) logits[i] = static_cast<float>(i);
  const Scoring scoring{.task = Task::kMultiClass, .outputs = 8};
  EXPECT_EQ(Score(scoring, logits, {3}).at("top5Accuracy"), 1);
  EXPECT_EQ(Score(scoring, logits, {2}).at("top5Accuracy"), 0);
  EXPECT_EQ(Score(scoring, std::vector<float>(8), {7}).at("top5Accuracy"), 0) << "a constant model knows nothing";
  EXPECT_FALSE(Score({.task = Task::kMultiClass, .outputs = 5}, std::vector<float>(5), {0}).contains("top5Accuracy"));
}

TEST(ScorerTest, MetricsOfSeveralLabelsAreTheirMeans) {
  const Scoring scoring{.task = Task::kMultiLabel, .outputs = 2};
  const auto metrics = Score(scoring, {2, -1, -2, 1}, {1, 1, 0, 0});
  const auto first = Score({}, {2, -2}, {1, 0});
  const auto second = Score({}, {-1, 1}, {1, 0});
  for (const char* name : {"logLoss", "accuracy", "auc"}) {
    EXPECT_NEAR(metrics.at(name), (first.at(name) + second.at(name)) / 2, 1e-9) << name;
  }
  EXPECT_EQ(metrics.at("test_samples"), 2);
}

TEST(ScorerTest, PartsOfSeveralMembersAddUpToTheWhole) {
  base::Rng rng(3);
  for (const Scoring& scoring :
       {Scoring{}, Scoring{.task = Task::kRegression, .deviation = 3}, Scoring{.task = Task::kMultiClass, .outputs = 4},
        Scoring{.task = Task::kMultiLabel, .outputs = 3}}) {
    Scorer whole(scoring);
    std::vector<Scorer> parts(3, Scorer(scoring));
    for (int i = 0; i < 300; ++i) {
      std::vector<float> logits(static_cast<size_t>(scoring.outputs));
      for (float& logit : logits) logit = static_cast<float>(rng.Uniform(-3, 3));
      std::vector<float> labels(static_cast<size_t>(scoring.labels()));
      const uint64_t values = scoring.task == Task::kMultiClass ? 4 : 2;
      for (float& label : labels) label = static_cast<float>(rng.Below(values));
      whole.Add(logits, labels);
      parts[static_cast<size_t>(i) % 3].Add(logits, labels);
    }
    ScoreSums sum;
    for (const Scorer& part : parts) sum.Add(part.scores());
    const auto expected = MetricsOf(whole.scores());
    const auto found = MetricsOf(sum);
    EXPECT_EQ(found.size(), expected.size());
    for (const auto& [name, value] : expected) EXPECT_NEAR(found.at(name), value, 1e-12) << name;
  }
}

TEST(ScorerTest, HistogramsAreBoundedTogether) {
  for (const int classes : {2, 3, 100, 128, 129, 1000}) {
    const Scorer scorer({.task = Task::kMultiClass, .outputs = classes});
    size_t counts = 0;
    for (const ScoreHistogram& histogram : scorer.scores().histograms) counts += histogram.positives.size();
    EXPECT_LE(counts, 2U * Scorer::kMostBuckets);
    EXPECT_EQ(counts > 0, classes <= Scorer::kMostHistograms);
  }
}

// A class for each token: those without a label count for nothing, each other one as a sample.
TEST(ScorerTest, TokensCountAsSamples) {
  Scorer tokens({.task = Task::kMultiClass, .outputs = 6, .tokens = 3});
  tokens.Add(std::vector<float>{2, 0, 0, 1, 5, 5, 1, 0, 0, 3, 0, 1}, std::vector<float>{0, 0, -100, 1, 1, -100});
  Scorer plain({.task = Task::kMultiClass, .outputs = 2});
  plain.Add(std::vector<float>{2, 0, 0, 1, 1, 0, 0, 3}, std::vector<float>{0, 0, 1, 1});
  EXPECT_EQ(tokens.scores().samples, 4);
  EXPECT_EQ(MetricsOf(tokens.scores()), MetricsOf(plain.scores()));
}

}  // namespace
}  // namespace medley::worker
