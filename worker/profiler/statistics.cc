#include "worker/profiler/statistics.h"

#include <algorithm>
#include <cmath>

#include "common/base/status.h"

namespace medley::worker {

double Median(std::vector<double> values) {
  MEDLEY_CHECK(!values.empty(), "a median needs at least one value");
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double Spread(const std::vector<double>& values) {
  constexpr double kNormal = 1.4826;  // ratio of standard deviation to median absolute deviation, normal distribution
  const double median = Median(values);
  if (median <= 0) return 0;
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - median));
  return kNormal * Median(std::move(distances)) / median;
}

bool HeldUp(std::span<const RunTimes> operations) {
  constexpr double kHeldUp = 1.02;
  double seconds = 0, burst = 0;
  for (const RunTimes& times : operations) {
    seconds += times.seconds;
    burst += times.burst_seconds;
  }
  return seconds > kHeldUp * burst;
}

double LongRunSeconds(const RunTimes& operation, double seconds_per_processor_second) {
  return std::max(operation.burst_seconds, operation.processor_seconds * seconds_per_processor_second);
}

double ParallelFraction(std::span<const double> units, std::span<const double> costs) {
  MEDLEY_CHECK(units.size() == costs.size() && !units.empty(), "there must be one cost per number of units");
  if (costs[0] <= 0) return 0;
  double products = 0;
  double squares = 0;
  for (size_t i = 0; i < units.size(); ++i) {
    const double x = 1 / units[i] - 1;
    products += x * (costs[i] / costs[0] - 1);
    squares += x * x;
  }
  return squares > 0 ? std::clamp(products / squares, 0.0, 1.0) : 0;
}

}  // namespace medley::worker
