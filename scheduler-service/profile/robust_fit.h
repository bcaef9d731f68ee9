// Relates measured costs to predicted ones by a regression that is robust against outliers. Pure functions.
#pragma once

#include <span>
#include <vector>

namespace medley::sched {

// One measurement. The prediction has two parts, in seconds: `stays` does not depend on the number of units, and
// `divides` has already been divided by it.
struct CostPoint {
  double stays = 0;
  double divides = 0;
  double measured = 0;  // > 0
  double Predicted() const { return stays + divides; }
};

// measured ~ stays * point.stays + divides * point.divides
struct CostFit {
  double stays = 1;
  double divides = 1;
  double Apply(const CostPoint& point) const { return stays * point.stays + divides * point.divides; }
  bool operator==(const CostFit&) const = default;
};

struct FitOptions {
  int min_points = 3;      // with fewer points there is no correction
  double max_factor = 10;  // factors are clamped to [1/max, max]
  // A fit with more parameters is preferred only if it lowers the error of left-out points by this share.
  double min_gain = 0.3;
};

// Returns the simplest of these fits that predicts left-out points well:
// - no correction;
// - one factor: the median ratio, if it differs from 1 significantly;
// - two factors: iteratively reweighted least squares on relative residuals with Tukey's biweight, starting at the one
//   factor, if the points differ enough in the ratio of their two parts.
// Points without a prediction are ignored.
CostFit FitCosts(std::span<const CostPoint> points, const FitOptions& options);

// The median of |log(measured / fit)|; 0 without points.
double MedianLogError(std::span<const CostPoint> points, const CostFit& fit);

// The median of at least one value; for an even number, the mean of the two middle ones.
double MedianOf(std::vector<double> values);

}  // namespace medley::sched
