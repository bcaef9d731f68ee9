#include "worker/data/transform.h"

#include <algorithm>
#include <cmath>

namespace medley::worker {
namespace {

double Log(double x) { return std::copysign(std::log1p(std::abs(x)), x); }

struct Moments {
  double mean = 0;
  double deviation = 0;
  double skew = 0;
};

// In units of a power of two near the largest value, so that squares of very large or small numbers stay in range.
template <typename Function>
Moments MomentsOf(std::span<const double> values, const Function& function) {
  Moments moments;
  double largest = 0;
  for (const double x : values) largest = std::max(largest, std::abs(function(x)));
  if (largest == 0) return moments;
  // Both factors are in the range of double.
  const double unit = std::ldexp(1.0, std::clamp(std::ilogb(largest), -1000, 1000));
  const double factor = 1 / unit;
  const auto scaled = [&](double x) { return function(x) * factor; };
  const double count = static_cast<double>(values.size());
  for (const double x : values) moments.mean += scaled(x) / count;
  double second = 0;
  double third = 0;
  for (const double x : values) {
    const double d = scaled(x) - moments.mean;
    second += d * d / count;
    third += d * d * d / count;
  }
  moments.deviation = std::sqrt(second);
  moments.skew = second > 0 ? third / (second * moments.deviation) : 0;
  // What rounding leaves of equal numbers is no deviation.
  if (moments.deviation <= 1e-12 * std::abs(moments.mean)) moments.deviation = 0;
  moments.mean *= unit;
  moments.deviation *= unit;
  return moments;
}

// Sorts the values.
std::vector<double> Quantiles(std::span<double> values, int buckets) {
  std::ranges::sort(values);
  std::vector<double> edges;
  for (int i = 1; i < buckets && !values.empty(); ++i) {
    const size_t at = values.size() * static_cast<size_t>(i) / static_cast<size_t>(buckets);
    // The first bucket ends above the smallest value, so that it is not empty.
    if (values[at] > values.front() && (edges.empty() || values[at] > edges.back())) edges.push_back(values[at]);
  }
  // One value that fills most of the column (for example 0 in counts) takes up most quantiles. Then add as edges the
  // quantiles of the values above it.
  if (!values.empty() && edges.size() < static_cast<size_t>(buckets) / 4) {
    const auto above = std::ranges::upper_bound(values, values[values.size() / 2]);
    const std::span<const double> tail(above, values.end());
    for (int i = 0; i < buckets / 2 && !tail.empty(); ++i) {
      edges.push_back(tail[tail.size() * static_cast<size_t>(i) / static_cast<size_t>(buckets / 2)]);
    }
    std::ranges::sort(edges);
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  }
  return edges;
}

}  // namespace

float NumericTransform::Standardize(double x) const {
  if (std::isnan(x)) return 0;
  return static_cast<float>(((log ? Log(x) : x) - mean) * inverse_deviation);
}

int NumericTransform::Bucket(double x) const {
  if (std::isnan(x)) return static_cast<int>(edges.size()) + 1;
  return static_cast<int>(std::ranges::upper_bound(edges, x) - edges.begin());
}

bool NeedsDouble(double mean, double deviation) {
  constexpr double kCoarse = 4096;  // float32 has 2^24 steps: 4096 of them in a deviation
  return deviation > 0 && std::abs(mean) > kCoarse * deviation;
}

NumericTransform FitNumeric(std::span<const double> values, int buckets) {
  std::vector<double> copy(values.begin(), values.end());
  return FitNumericInPlace(copy, buckets);
}

NumericTransform FitNumericInPlace(std::span<double> values, int buckets) {
  constexpr double kSkewed = 2;
  const auto missing = std::remove_if(values.begin(), values.end(), [](double x) { return std::isnan(x); });
  const std::span<double> known(values.begin(), missing);
  const auto identity = [](double x) { return x; };
  Moments moments = MomentsOf(known, identity);
  NumericTransform transform;
  if (std::abs(moments.skew) > kSkewed) {
    transform.log = true;
    // Logarithms take long to compute, and buckets need the numbers themselves.
    std::vector<double> copy;
    if (buckets > 0) copy.assign(known.begin(), known.end());
    const std::span<double> logarithms = buckets > 0 ? std::span<double>(copy) : known;
    for (double& x : logarithms) x = Log(x);
    moments = MomentsOf(logarithms, identity);
  }
  transform.mean = moments.mean;
  if (const double inverse = 1 / moments.deviation; std::isfinite(inverse)) transform.inverse_deviation = inverse;
  if (buckets > 0) transform.edges = Quantiles(known, buckets);
  return transform;
}

float LabelTransform::Standardize(double label) const {
  return static_cast<float>(((log ? std::log1p(label) : label) - mean) / deviation);
}

double LabelTransform::Number(double output) const {
  const double number = mean + deviation * output;
  constexpr double kMostExponent = 700;
  return log ? std::expm1(std::min(number, kMostExponent)) : number;
}

LabelTransform FitLabel(std::span<const double> labels, bool log) {
  const Moments moments = MomentsOf(labels, [log](double x) { return log ? std::log1p(x) : x; });
  LabelTransform label;
  label.log = log;
  label.mean = moments.mean;
  if (moments.deviation > 0) label.deviation = moments.deviation;
  return label;
}

}  // namespace medley::worker
