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

template <typename Function>
Moments MomentsOf(std::span<const float> values, const Function& function) {
  Moments moments;
  if (values.empty()) return moments;
  const double count = static_cast<double>(values.size());
  for (const float x : values) moments.mean += function(static_cast<double>(x)) / count;
  double second = 0;
  double third = 0;
  for (const float x : values) {
    const double d = function(static_cast<double>(x)) - moments.mean;
    second += d * d / count;
    third += d * d * d / count;
  }
  moments.deviation = std::sqrt(second);
  moments.skew = second > 0 ? third / (second * moments.deviation) : 0;
  return moments;
}

std::vector<float> Quantiles(std::vector<float> values, int buckets) {
  std::ranges::sort(values);
  std::vector<float> edges;
  for (int i = 1; i < buckets && !values.empty(); ++i) {
    const size_t at = values.size() * static_cast<size_t>(i) / static_cast<size_t>(buckets);
    // The first bucket ends above the smallest value, so that it is not empty.
    if (values[at] > values.front() && (edges.empty() || values[at] > edges.back())) edges.push_back(values[at]);
  }
  // One value that fills most of the column (for example 0 in counts) takes up most quantiles. Then add as edges the
  // quantiles of the values above it.
  if (!values.empty() && edges.size() < static_cast<size_t>(buckets) / 4) {
    const auto above = std::ranges::upper_bound(values, values[values.size() / 2]);
    const std::vector<float> tail(above, values.end());
    for (int i = 0; i < buckets / 2 && !tail.empty(); ++i) {
      edges.push_back(tail[tail.size() * static_cast<size_t>(i) / static_cast<size_t>(buckets / 2)]);
    }
    std::ranges::sort(edges);
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  }
  return edges;
}

}  // namespace

float NumericTransform::Standardize(float x) const {
  if (std::isnan(x)) return 0;
  const double value = log ? Log(static_cast<double>(x)) : static_cast<double>(x);
  return static_cast<float>((value - static_cast<double>(mean)) * static_cast<double>(inverse_deviation));
}

int NumericTransform::Bucket(float x) const {
  if (std::isnan(x)) return static_cast<int>(edges.size()) + 1;
  return static_cast<int>(std::ranges::upper_bound(edges, x) - edges.begin());
}

NumericTransform FitNumeric(std::span<const float> values, int buckets) {
  constexpr double kSkewed = 2;
  std::vector<float> known;
  std::ranges::copy_if(values, std::back_inserter(known), [](float x) { return !std::isnan(x); });
  const auto identity = [](double x) { return x; };
  Moments moments = MomentsOf(known, identity);
  NumericTransform transform;
  if (std::abs(moments.skew) > kSkewed) {
    transform.log = true;
    moments = MomentsOf(known, Log);
  }
  transform.mean = static_cast<float>(moments.mean);
  transform.inverse_deviation = moments.deviation > 1e-12 ? static_cast<float>(1 / moments.deviation) : 0;
  if (buckets > 0) transform.edges = Quantiles(std::move(known), buckets);
  return transform;
}

LabelTransform FitLabel(std::span<const float> labels) {
  const Moments moments = MomentsOf(labels, [](double x) { return x; });
  LabelTransform label;
  label.mean = static_cast<float>(moments.mean);
  const auto deviation = static_cast<float>(moments.deviation);
  if (deviation > 0) label.deviation = deviation;
  return label;
}

}  // namespace medley::worker
