#include "scheduler-service/profile/robust_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace medley::sched {
namespace {

constexpr int kIterations = 8;
constexpr size_t kMaxLeftOut = 24;
constexpr double kTukey = 4.685;  // 95 % efficiency on normal residuals
constexpr double kMadToSigma = 1.4826;
constexpr double kMinSigma = 0.005;  // relative; assumed smallest error of a measurement
constexpr double kRidge = 1e-3;      // pulls both factors towards the single factor
// Two factors can be distinguished if the share that divides varies by this much over the points.
constexpr double kMinSpread = 0.15;
constexpr size_t kVeryFew = 6;
constexpr size_t kMinPointsForTwo = 12;

double Clamp(double factor, const FitOptions& options) {
  return std::clamp(factor, 1 / options.max_factor, options.max_factor);
}

CostFit OneFactor(std::span<const CostPoint> points, const FitOptions& options) {
  std::vector<double> ratios;
  ratios.reserve(points.size());
  for (const CostPoint& p : points) ratios.push_back(p.measured / p.Predicted());
  const double factor = Clamp(MedianOf(std::move(ratios)), options);
  return {factor, factor};
}

// True if the median ratio differs from 1 significantly. Its standard error comes from the median absolute deviation of
// the logarithms. Because that is too small for few points, the test is stricter for few points, and for very few it
// uses their whole range.
bool Significant(std::span<const CostPoint> points) {
  std::vector<double> logs;
  for (const CostPoint& p : points) logs.push_back(std::log(p.measured / p.Predicted()));
  const double center = MedianOf(logs);
  const auto [low, high] = std::minmax_element(logs.begin(), logs.end());
  const double range = logs.size() < kVeryFew ? (*high - *low) / 2 : 0;
  for (double& value : logs) value = std::abs(value - center);
  const auto count = static_cast<double>(logs.size());
  const double sigma = std::max({kMinSigma, range, kMadToSigma * MedianOf(std::move(logs))});
  const double standard_error = 1.25 * sigma / std::sqrt(count);  // of a median
  return std::abs(center) > (3 + 15 / count) * standard_error;
}

bool CanFitTwoFactors(std::span<const CostPoint> points) {
  if (points.size() < kMinPointsForTwo) return false;
  std::vector<double> shares;
  for (const CostPoint& p : points) shares.push_back(p.divides / p.Predicted());
  std::sort(shares.begin(), shares.end());
  // Ignore the extremes, because a single outlier must not decide this.
  const size_t tenth = shares.size() / 10 + 1;
  return shares[shares.size() - tenth] - shares[tenth - 1] >= kMinSpread;
}

// Solves stays * x + divides * z = 1 by weighted ridge regression, where x and z are the two predicted parts divided by
// the measured value. The ridge pulls both factors to `ridge_to`.
CostFit Solve(std::span<const CostPoint> points, const std::vector<double>& weights, double ridge_to) {
  double xx = 0, xz = 0, zz = 0, x1 = 0, z1 = 0, sum = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const double x = points[i].stays / points[i].measured;
    const double z = points[i].divides / points[i].measured;
    xx += weights[i] * x * x;
    xz += weights[i] * x * z;
    zz += weights[i] * z * z;
    x1 += weights[i] * x;
    z1 += weights[i] * z;
    sum += weights[i];
  }
  const double ridge = kRidge * sum / (ridge_to * ridge_to);
  xx += ridge;
  zz += ridge;
  x1 += ridge * ridge_to;
  z1 += ridge * ridge_to;
  const double determinant = xx * zz - xz * xz;
  if (!(determinant > 0)) return {ridge_to, ridge_to};
  return {(x1 * zz - z1 * xz) / determinant, (z1 * xx - x1 * xz) / determinant};
}

CostFit TwoFactors(std::span<const CostPoint> points, const FitOptions& options) {
  const double one = OneFactor(points, options).stays;
  CostFit fit{one, one};
  std::vector<double> weights(points.size(), 1);
  std::vector<double> residuals(points.size());
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    for (size_t i = 0; i < points.size(); ++i) {
      residuals[i] = std::abs(fit.Apply(points[i]) / points[i].measured - 1);
    }
    const double limit = kTukey * std::max(kMinSigma, kMadToSigma * MedianOf(residuals));
    for (size_t i = 0; i < points.size(); ++i) {
      const double u = residuals[i] / limit;
      weights[i] = u < 1 ? (1 - u * u) * (1 - u * u) : 0;
    }
    const CostFit next = Solve(points, weights, one);
    fit = {Clamp(next.stays, options), Clamp(next.divides, options)};
  }
  return fit;
}

using Fitter = std::function<CostFit(std::span<const CostPoint>, const FitOptions&)>;

// The median error of points when the fit uses all other points. If there are many points, only some of them are left
// out, evenly spread.
double LeaveOneOut(const std::vector<CostPoint>& points, const FitOptions& options, const Fitter& fitter) {
  std::vector<double> errors;
  errors.reserve(points.size());
  const size_t stride = (points.size() + kMaxLeftOut - 1) / kMaxLeftOut;
  std::vector<CostPoint> others(points.begin() + 1, points.end());  // all except the first
  for (size_t i = 0; i < points.size(); ++i) {
    if (i % stride == 0) errors.push_back(MedianLogError({&points[i], 1}, fitter(others, options)));
    if (i < others.size()) others[i] = points[i];
  }
  return MedianOf(std::move(errors));
}

}  // namespace

double MedianOf(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle), values.end());
  const double high = values[middle];
  if (values.size() % 2 == 1) return high;
  return (high + *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle))) / 2;
}

double MedianLogError(std::span<const CostPoint> points, const CostFit& fit) {
  if (points.empty()) return 0;
  std::vector<double> errors;
  errors.reserve(points.size());
  for (const CostPoint& p : points) errors.push_back(std::abs(std::log(p.measured / fit.Apply(p))));
  return MedianOf(std::move(errors));
}

CostFit FitCosts(std::span<const CostPoint> given, const FitOptions& options) {
  std::vector<CostPoint> points;
  for (const CostPoint& p : given) {
    if (p.Predicted() > 0 && p.measured > 0) points.push_back(p);
  }
  CostFit best;
  if (points.size() < 2 || std::ssize(points) < options.min_points) return best;
  double error = MedianLogError(points, best);
  const auto consider = [&](const Fitter& fitter) {
    const double left_out = LeaveOneOut(points, options, fitter);
    if (left_out > (1 - options.min_gain) * error) return;
    error = left_out;
    best = fitter(points, options);
  };
  if (Significant(points)) consider(OneFactor);
  if (CanFitTwoFactors(points)) consider(TwoFactors);
  return best;
}

}  // namespace medley::sched
