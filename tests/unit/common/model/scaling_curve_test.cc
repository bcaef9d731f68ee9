// Fits against curves that are known, with noise.
#include "common/model/scaling_curve.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>
#include <vector>

namespace medley::model {
namespace {

std::vector<SizeMeasure> Measure(const ScalingCurve& truth, const std::vector<int>& sizes, double noise,
                                 std::mt19937& random) {
  std::normal_distribution<> normal;
  std::vector<SizeMeasure> measures;
  for (const int units : sizes) {
    measures.push_back({units, truth.Seconds(units) * (1 + noise * normal(random)), noise});
  }
  return measures;
}

TEST(ScalingCurveTest, OneSizeIsDividedByTheUnits) {
  const std::vector<SizeMeasure> one = {{1, 0.8, 0}};
  EXPECT_DOUBLE_EQ(FitScaling(one).Seconds(4), 0.2);
  const std::vector<SizeMeasure> four = {{4, 0.2, 0}};
  EXPECT_DOUBLE_EQ(FitScaling(four).Seconds(1), 0.8);
}

TEST(ScalingCurveTest, KnownCurvesAreFound) {
  for (const ScalingCurve& truth : {ScalingCurve{0, 1, 0}, ScalingCurve{0.2, 1, 0}, ScalingCurve{0.1, 1, 0.05},
                                    ScalingCurve{0, 1, 0.2}, ScalingCurve{0.5, 0.5, 0.3}}) {
    std::mt19937 random(3);
    const ScalingCurve found = FitScaling(Measure(truth, {1, 2, 4, 8}, 0, random));
    for (const int units : {1, 2, 3, 4, 6, 8, 16}) {
      EXPECT_NEAR(found.Seconds(units) / truth.Seconds(units), 1, 1e-6)
          << truth.fixed << " " << truth.divided << " " << truth.doubling << " at " << units;
    }
    EXPECT_EQ(found.sizes, 4);
  }
}

TEST(ScalingCurveTest, TwoSizesSayWhatIsFixedOrWhatCommunicationCosts) {
  const std::vector<SizeMeasure> amdahl = {{1, 1.2, 0}, {2, 0.7, 0}};
  EXPECT_NEAR(FitScaling(amdahl).Seconds(4), 0.45, 1e-6);
  const std::vector<SizeMeasure> slower = {{1, 1, 0}, {2, 1.1, 0}};  // more than the work of one unit
  EXPECT_NEAR(FitScaling(slower).Seconds(2), 1.1, 1e-6);
  EXPECT_GT(FitScaling(slower).Seconds(4), 1.1);
}

TEST(ScalingCurveTest, NoTermIsNegativeAlsoWhereMoreUnitsHelpMoreThanTheyShould) {
  const std::vector<SizeMeasure> measures = {{1, 1, 0.01}, {2, 0.45, 0.01}, {4, 0.2, 0.01}};
  const ScalingCurve curve = FitScaling(measures);
  EXPECT_GE(curve.fixed, 0);
  EXPECT_GE(curve.divided, 0);
  EXPECT_GE(curve.doubling, 0);
  EXPECT_NEAR(curve.Seconds(2), 0.45, 0.06);
  EXPECT_GT(curve.spread, 0.02) << "it does not fit, and says so";
}

// What a plan promises between and just beyond the measured sizes, when each was measured with 3 % of noise.
TEST(ScalingCurveTest, NoiseIsAveraged) {
  std::mt19937 random(11);
  std::uniform_real_distribution<> part(0, 1);
  double worst = 0;
  int within = 0, all = 0;
  for (int round = 0; round < 400; ++round) {
    const ScalingCurve truth{0.4 * part(random), 0.2 + part(random), 0.1 * part(random)};
    const ScalingCurve found = FitScaling(Measure(truth, {1, 2, 4}, 0.03, random));
    for (const int units : {1, 2, 3, 4}) {
      const double off = std::abs(found.Seconds(units) / truth.Seconds(units) - 1);
      worst = std::max(worst, off);
      within += off <= 2 * found.spread ? 1 : 0;
      ++all;
    }
  }
  EXPECT_LT(worst, 0.15);
  EXPECT_GT(within, all * 9 / 10) << "the spread says how far it is off";
}

// A measurement that is more exact counts more.
TEST(ScalingCurveTest, ExactMeasurementsCountMore) {
  const std::vector<SizeMeasure> measures = {{1, 1, 0.01}, {1, 2, 0.5}, {2, 0.5, 0.01}, {4, 0.25, 0.01}};
  EXPECT_NEAR(FitScaling(measures).Seconds(1), 1, 0.02);
}

}  // namespace
}  // namespace medley::model
