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

// Means of one operation. `burst_seconds`: the median of single runs.
struct RunTimes {
  double seconds = 0;
  double burst_seconds = 0;
  double processor_seconds = 0;
};

// Whether a CPU limit or other work holds up the operations as a whole: they take 2 % longer than their single runs.
bool HeldUp(std::span<const RunTimes> operations);

// Seconds of an operation in the long run under a CPU limit, which grants a second of processor time in
// `seconds_per_processor_second`; at least those of a single run, which a limit of several cores may not hold up.
double LongRunSeconds(const RunTimes& operation, double seconds_per_processor_second);

// The fraction a in [0, 1] of a cost that is divided by the number of units k: a least-squares fit of
//   cost(k) / cost(1) = 1 - a + a / k          (docs/design/planning.md, "The cost model")
// `costs[i]` is the cost with `units[i]` units; units[0] is 1. Returns 0 when cost(1) is 0.
double ParallelFraction(std::span<const double> units, std::span<const double> costs);

}  // namespace medley::worker
