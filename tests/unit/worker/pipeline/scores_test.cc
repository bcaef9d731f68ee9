#include "worker/pipeline/scores.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/base/rng.h"

namespace medley::worker {
namespace {

TEST(ScoresTest, AucOfPerfectReversedAndConstantScores) {
  ScoreHistogram perfect;
  ScoreHistogram reversed;
  ScoreHistogram constant;
  for (int i = 0; i < 100; ++i) {
    const float label = i < 30 ? 1 : 0;
    perfect.Add(label * 4 - 2, label);
    reversed.Add(2 - label * 4, label);
    constant.Add(0.3F, label);
  }
  EXPECT_EQ(Auc(perfect.positives(), perfect.negatives()), 1);
  EXPECT_EQ(Auc(reversed.positives(), reversed.negatives()), 0);
  EXPECT_EQ(Auc(constant.positives(), constant.negatives()), 0.5);
  EXPECT_EQ(Auc(std::vector<int64_t>{3}, std::vector<int64_t>{0}), 0.5);
}

TEST(ScoresTest, AucAgreesWithThePairwiseDefinition) {
  base::Rng rng(2);
  ScoreHistogram histogram;
  std::vector<float> positives;
  std::vector<float> negatives;
  for (int i = 0; i < 600; ++i) {
    const float label = static_cast<float>(rng.Below(2));
    const float logit = static_cast<float>(rng.Uniform(-3, 3)) + label;
    histogram.Add(logit, label);
    (label > 0 ? positives : negatives).push_back(logit);
  }
  double won = 0;
  for (const float p : positives) {
    for (const float n : negatives) won += p > n ? 1 : 0;
  }
  const double pairs = static_cast<double>(positives.size()) * static_cast<double>(negatives.size());
  EXPECT_NEAR(Auc(histogram.positives(), histogram.negatives()), won / pairs, 1e-3);
  EXPECT_EQ(histogram.samples(), 600);
}

TEST(ScoresTest, LogLossIsStable) {
  EXPECT_NEAR(LogLoss(0, 1), std::log(2.0), 1e-12);
  EXPECT_NEAR(LogLoss(2, 1), std::log1p(std::exp(-2.0)), 1e-9);
  EXPECT_NEAR(LogLoss(2, 0), 2 + std::log1p(std::exp(-2.0)), 1e-9);
  EXPECT_EQ(LogLoss(-1000, 1), 1000);
  EXPECT_EQ(LogLoss(1000, 1), 0);
}

}  // namespace
}  // namespace medley::worker
