// How measured costs relate to predicted ones, by a regression that outliers do not move. Pure functions.
#pragma once

#include <span>
#include <vector>

namespace medley::sched {

// One measurement. Predicted seconds in two parts: what stays and what divides by units (as it is after the division).
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
  int min_points = 3;      // fewer: no correction
  double max_factor = 10;  // factors are clamped to [1/max, max]
  // A more elaborate fit must lower the error of points that it has not seen by this share to be preferred.
  double min_gain = 0.3;
};

// The simplest of these that predicts left-out points well: no correction; one factor (the median ratio, where it
// differs from 1 by more than chance explains); two factors
// (Tukey's biweight by iteratively reweighted least squares on relative residuals, from the one factor on, where the
// points differ enough in their split). Points without a prediction are left out.
CostFit FitCosts(std::span<const CostPoint> points, const FitOptions& options);

// Median of |log(measured / fit)|; 0 for no points.
double MedianLogError(std::span<const CostPoint> points, const CostFit& fit);

// Of at least one value; the mean of the two middle ones for an even number.
double MedianOf(std::vector<double> values);

}  // namespace medley::sched
