// Robust statistics of repeated measurements, and the fit of a parallel fraction. Pure functions.
#pragma once

#include <span>
#include <vector>

namespace medley::worker {

// The median of at least one value; for an even number of values the mean of the two middle ones.
double Median(std::vector<double> values);

// Standard deviation divided by mean, estimated from the median absolute deviation, so that single outliers do not
// matter.
double Spread(const std::vector<double>& values);

// The fraction a in [0, 1] of a cost that is divided by the number of units k: a least-squares fit of
//   cost(k) / cost(1) = 1 - a + a / k          (docs/design/planning.md, "The cost model")
// `costs[i]` is the cost with `units[i]` units; units[0] is 1. Returns 0 when cost(1) is 0.
double ParallelFraction(std::span<const double> units, std::span<const double> costs);

}  // namespace medley::worker
