// Robust statistics of repeated measurements, and the fit of how a cost divides. Pure functions.
#pragma once

#include <span>
#include <vector>

namespace medley::worker {

// Of at least one value; the mean of the two middle ones for an even number.
double Median(std::vector<double> values);

// Standard deviation over mean, estimated from the median absolute deviation (a pause of the
// machine does not count).
double Spread(const std::vector<double>& values);

// The fraction a in [0, 1] of a cost that divides by the number of units k, least squares on
//   cost(k) / cost(1) = 1 - a + a / k          (design: planning.md, section 1)
// `costs[i]` belongs to `units[i]`; units[0] is 1. 0 when cost(1) is 0.
double ParallelFraction(std::span<const double> units, std::span<const double> costs);

}  // namespace medley::worker
