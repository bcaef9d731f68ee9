// The regression recovers known factors despite noise and outliers, and no correction makes predictions for new points
// worse.
#include "scheduler-service/profile/robust_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/base/rng.h"

namespace medley::sched {
namespace {

struct Truth {
  double stays = 1;
  double divides = 1;
  double noise = 0.03;
  double outliers = 0.2;  // share of points with an error of up to a factor of 8
};

double Normal(base::Rng& rng) {
  return std::sqrt(-2 * std::log(1 - rng.Uniform())) * std::cos(6.283185307179586 * rng.Uniform());
}

std::vector<CostPoint> Draw(const Truth& truth, int count, base::Rng& rng) {
  std::vector<CostPoint> points;
  for (int i = 0; i < count; ++i) {
    const double units = std::exp2(static_cast<double>(rng.Below(6)));
    CostPoint p{0.004, 0.060 / units, 0};
    p.measured = (truth.stays * p.stays + truth.divides * p.divides) * std::exp(truth.noise * Normal(rng));
    points.push_back(p);
  }
  for (int i = 0; i < static_cast<int>(truth.outliers * count);
       ++i) {  // the order of points does not matter, so use the first ones
    points[static_cast<size_t>(i)].measured *= rng.Uniform() < 0.7 ? rng.Uniform(2, 8) : 1 / rng.Uniform(2, 8);
  }
  return points;
}

TEST(FitCostsTest, RecoversTwoFactorsUnderOutliersAndNoise) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    base::Rng rng(seed);
    const Truth truth{rng.Uniform(0.5, 4), rng.Uniform(0.5, 4)};
    const CostFit fit = FitCosts(Draw(truth, 48, rng), {});
    // The serial part is a fifteenth of the whole with few units and a third with many.
    EXPECT_NEAR(fit.divides / truth.divides, 1, 0.10) << "seed " << seed;
    EXPECT_NEAR(fit.Apply({0.004, 0.060 / 32, 0}) / (truth.stays * 0.004 + truth.divides * 0.060 / 32), 1, 0.10)
        << "seed " << seed;
  }
}

TEST(FitCostsTest, OneFactorIfPointsCannotDetermineTwo) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    base::Rng rng(seed);
    std::vector<CostPoint> points;
    for (int i = 0; i < 20; ++i) points.push_back({0.004, 0.03, 0.034 * 1.7 * std::exp(0.02 * Normal(rng))});
    const CostFit fit = FitCosts(points, {});
    EXPECT_EQ(fit.stays, fit.divides);
    EXPECT_NEAR(fit.divides, 1.7, 0.05);
  }
}

TEST(FitCostsTest, ThreePointsCorrectTwoDoNot) {
  const std::vector<CostPoint> points = {{0, 1, 2}, {0, 1, 2.02}, {0, 1, 1.98}};
  EXPECT_EQ(FitCosts(std::span(points).first(2), {}), CostFit());
  EXPECT_NEAR(FitCosts(points, {}).divides, 2, 1e-9);
}

TEST(FitCostsTest, ClampedToTen) {
  const std::vector<CostPoint> points(6, {0, 1, 1000});
  EXPECT_EQ(FitCosts(points, {}).divides, 10);
  const std::vector<CostPoint> small(6, {0, 1, 0.01});
  EXPECT_EQ(FitCosts(small, {}).divides, 0.1);
}

TEST(FitCostsTest, PointsWithoutAPredictionAreIgnored) {
  const std::vector<CostPoint> points = {{0, 0, 2}, {0, 0, 2}, {0, 1, 2}, {0, 1, 2}};
  EXPECT_EQ(FitCosts(points, {}), CostFit());
}

// Held-out points are drawn like the observed ones, without outliers. For a profile that is already correct, the
// correction may add at most the error of a median of few noisy points; on average it must lower the error clearly.
TEST(FitCostsTest, NeverWorseThanNoCorrectionOnNewPoints) {
  int corrected = 0;
  double errors_with = 0;
  double errors_without = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    base::Rng rng(seed);
    Truth truth{1, 1, rng.Uniform(0.01, 0.3), rng.Uniform(0, 0.2)};
    if (seed % 3 != 0) {  // a third of the profiles is already correct
      truth.stays = std::exp(rng.Uniform(-1.2, 1.2));
      truth.divides = seed % 3 == 1 ? truth.stays : std::exp(rng.Uniform(-1.2, 1.2));
    }
    const std::vector<CostPoint> seen = Draw(truth, 3 + static_cast<int>(rng.Below(46)), rng);
    truth.outliers = 0;
    const std::vector<CostPoint> unseen = Draw(truth, 200, rng);
    const CostFit fit = FitCosts(seen, {});
    corrected += fit == CostFit() ? 0 : 1;
    const double with = MedianLogError(unseen, fit);
    const double without = MedianLogError(unseen, {});
    errors_with += with;
    errors_without += without;
    EXPECT_LE(with, without * 1.1 + 0.25 * truth.noise) << "seed " << seed;
  }
  EXPECT_GT(corrected, 250);
  EXPECT_LT(errors_with, 0.5 * errors_without);
  RecordProperty("corrected", corrected);
}

}  // namespace
}  // namespace medley::sched
