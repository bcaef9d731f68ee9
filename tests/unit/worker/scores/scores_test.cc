#include "worker/scores/scores.h"

#include <gtest/gtest.h>

#include <cmath>

#include "worker/scores/losses.h"

namespace medley::worker {
namespace {

TEST(ScoresTest, AucOfHandWorkedHistograms) {
  // Pairs: 1.5 of 2 from the middle bucket, 2 of 2 from the last.
  EXPECT_DOUBLE_EQ(*Auc({{0, 1, 1}, {1, 1, 0}}), 3.5 / 4);
  EXPECT_FALSE(Auc({{3, 1}, {0, 0}}));
  EXPECT_FALSE(Auc({}));
}

TEST(ScoresTest, MetricsAreMeansOfSumsAndOfAucs) {
  const ScoreSums scores{.samples = 4,
                         .sums = {{"logLoss", 2}, {"accuracy", 3}},
                         .histograms = {{{0, 1, 1}, {1, 1, 0}}, {{0, 3}, {1, 0}}, {{2}, {0}}}};
  const auto metrics = MetricsOf(scores);
  EXPECT_EQ(metrics.size(), 5U) << "with prAuc";
  EXPECT_DOUBLE_EQ(metrics.at("logLoss"), 0.5);
  EXPECT_DOUBLE_EQ(metrics.at("accuracy"), 0.75);
  EXPECT_DOUBLE_EQ(metrics.at("test_samples"), 4);
  EXPECT_DOUBLE_EQ(metrics.at("auc"), (3.5 / 4 + 1) / 2) << "the third has none";
  EXPECT_TRUE(MetricsOf({}).empty());
  EXPECT_FALSE(MetricsOf({.samples = 1, .sums = {}, .histograms = {{{1}, {0}}}}).contains("auc"));
}

TEST(ScoresTest, R2FollowsFromTheMomentsOfTheLabel) {
  // Labels 1, 2, 3, 6: variance 3.5. Errors 1, 0, -1, 1.
  const ScoreSums scores{
      .samples = 4, .sums = {{"mse", 3}, {"mae", 3}, {kLabelSum, 12}, {kLabelSquareSum, 50}}, .histograms = {}};
  const auto metrics = MetricsOf(scores);
  EXPECT_DOUBLE_EQ(metrics.at("mse"), 0.75);
  EXPECT_DOUBLE_EQ(metrics.at("mae"), 0.75);
  EXPECT_DOUBLE_EQ(metrics.at("r2"), 1 - 0.75 / 3.5);
  EXPECT_EQ(metrics.size(), 5U) << "with rmse; the moments are no metrics";
  const ScoreSums equal{.samples = 2, .sums = {{"mse", 1}, {kLabelSum, 6}, {kLabelSquareSum, 18}}, .histograms = {}};
  EXPECT_FALSE(MetricsOf(equal).contains("r2"));
}

TEST(ScoresTest, LogLossIsStable) {
  EXPECT_NEAR(LogLoss(0, 1), std::log(2.0), 1e-12);
  EXPECT_NEAR(LogLoss(2, 1), std::log1p(std::exp(-2.0)), 1e-9);
  EXPECT_NEAR(LogLoss(2, 0), 2 + std::log1p(std::exp(-2.0)), 1e-9);
  EXPECT_EQ(LogLoss(-1000, 1), 1000);
  EXPECT_EQ(LogLoss(1000, 1), 0);
}

TEST(ScoresTest, LogSumExpIsStable) {
  EXPECT_NEAR(LogSumExp(std::vector<float>{3, 3, 3}), 3 + std::log(3.0), 1e-12);
  EXPECT_EQ(LogSumExp(std::vector<float>{-2000, 1000, 0}), 1000);
  EXPECT_EQ(LogSumExp(std::vector<float>{-2000}), -2000);
}

}  // namespace
}  // namespace medley::worker
