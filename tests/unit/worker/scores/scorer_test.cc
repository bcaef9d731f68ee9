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

// A weight of 2 is the same as the row twice, and one of 0 the same as no row.
TEST(ScorerTest, WeightsCountLikeRepeatedRows) {
  base::Rng rng(11);
  for (const Scoring& scoring :
       {Scoring{}, Scoring{.task = Task::kRegression, .deviation = 3, .mean = 1},
        Scoring{.task = Task::kRegression, .deviation = 0.5, .mean = 2, .log = true},
        Scoring{.task = Task::kMultiClass, .outputs = 7}, Scoring{.task = Task::kMultiLabel, .outputs = 3}}) {
    const auto outputs = static_cast<size_t>(scoring.outputs), width = static_cast<size_t>(scoring.labels());
    std::vector<float> logits, labels, weights, many_logits, many_labels;
    for (int i = 0; i < 200; ++i) {
      std::vector<float> logit(outputs), label(width);
      for (float& x : logit) x = static_cast<float>(rng.Uniform(-2, 2));
      for (float& x : label) {
        x = scoring.task == Task::kRegression ? static_cast<float>(rng.Uniform(-2, 2))
                                              : static_cast<float>(rng.Below(outputs == 7 ? 7 : 2));
      }
      const auto times = static_cast<int>(rng.Below(4));
      logits.insert(logits.end(), logit.begin(), logit.end());
      labels.insert(labels.end(), label.begin(), label.end());
      weights.push_back(0.125F * static_cast<float>(times));  // only ratios matter
      for (int t = 0; t < times; ++t) {
        many_logits.insert(many_logits.end(), logit.begin(), logit.end());
        many_labels.insert(many_labels.end(), label.begin(), label.end());
      }
    }
    Scorer whole(scoring), first(scoring), second(scoring);
    whole.Add(logits, labels, weights);
    const auto part = [&](Scorer& scorer, size_t from, size_t count) {
      scorer.Add(std::span(logits).subspan(from * outputs, count * outputs),
                 std::span(labels).subspan(from * width, count * width), std::span(weights).subspan(from, count));
    };
    part(first, 0, 130);
    part(second, 130, 70);
    ScoreSums sums = second.scores();
    sums.Add(first.scores());
    std::map<std::string, double> expected = Score(scoring, many_logits, many_labels);
    expected["test_samples"] = 200;
    const auto added = MetricsOf(sums), found = MetricsOf(whole.scores());
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [name, value] : expected) {
      EXPECT_NEAR(found.at(name), value, 1e-9) << name;
      EXPECT_NEAR(added.at(name), value, 1e-9) << name;
    }
    EXPECT_NE(Score(scoring, logits, labels).at(scoring.task == Task::kRegression ? "mse" : "logLoss"),
              found.at(scoring.task == Task::kRegression ? "mse" : "logLoss"));
  }
}

// What scikit-learn's f1_score(average="macro") and balanced_accuracy_score give.
TEST(ScorerTest, MeansOverTheClasses) {
  const Scoring scoring{.task = Task::kMultiClass, .outputs = 4};  // no sample has the last class
  const auto metrics = Score(scoring, {5, 0, 0, 0, 0, 5, 0, 0, 0, 0, 5, 0, 5, 0, 0, 0}, {0, 1, 2, 2});
  EXPECT_NEAR(metrics.at("f1"), (2.0 / 3 + 1 + 2.0 / 3) / 3, 1e-12);
  EXPECT_NEAR(metrics.at("balancedAccuracy"), (1 + 1 + 0.5) / 3, 1e-12);
  EXPECT_NEAR(Score(scoring, {5, 0, 0, 0, 0, 0, 0, 5}, {0, 0}).at("f1"), (2.0 / 3 + 0) / 2, 1e-12) << "0 if predicted";
  EXPECT_NEAR(Score(scoring, {5, 0, 0, 0, 0, 0, 0, 5}, {0, 0}).at("balancedAccuracy"), 0.5, 1e-12);
  EXPECT_NEAR(Score({}, {1, 1, -1, 1}, {1, 0, 0, 0}).at("balancedAccuracy"), (1 + 1.0 / 3) / 2, 1e-12);
}

TEST(ScorerTest, ErrorsOfALogarithmAreInTheUnitOfTheLabel) {
  const Scoring scoring{.task = Task::kRegression, .deviation = 2, .mean = 1, .log = true};
  const auto output = [](double label) { return static_cast<float>((std::log1p(label) - 1) / 2); };
  const auto metrics = Score(scoring, {output(12), output(20), output(30)}, {output(10), output(20), output(36)});
  EXPECT_NEAR(metrics.at("mse"), (4 + 36) / 3.0, 1e-3);
  EXPECT_NEAR(metrics.at("mae"), 8 / 3.0, 1e-4);
  EXPECT_NEAR(metrics.at("r2"), 1 - 40 / 344.0, 1e-4);
  EXPECT_TRUE(std::isfinite(Score(scoring, {400}, {0}).at("mae")));
}

}  // namespace
}  // namespace medley::worker
