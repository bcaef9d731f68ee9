#include "common/model/scaling_curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <vector>

namespace medley::model {
namespace {

constexpr int kTerms = 3;
constexpr double kLeastSpread = 0.005;  // no measurement is more exact than this

using Row = std::array<double, kTerms>;

Row RowOf(int units) { return {1, 1.0 / units, std::log2(units)}; }

// Solves the normal equations for the terms in `active`; nullopt: they have no single solution, or one is negative.
std::optional<Row> Solve(const std::vector<Row>& rows, const std::vector<double>& values,
                         const std::vector<double>& weights, const std::vector<int>& active) {
  const size_t n = active.size();
  std::vector<std::vector<double>> a(n, std::vector<double>(n + 1, 0));
  for (size_t p = 0; p < rows.size(); ++p) {
    for (size_t i = 0; i < n; ++i) {
      const double left = weights[p] * rows[p][static_cast<size_t>(active[i])];
      for (size_t j = 0; j < n; ++j) a[i][j] += left * rows[p][static_cast<size_t>(active[j])];
      a[i][n] += left * values[p];
    }
  }
  double scale = 0;
  for (size_t i = 0; i < n; ++i) scale = std::max(scale, std::abs(a[i][i]));
  for (size_t i = 0; i < n; ++i) {
    size_t best = i;
    for (size_t j = i + 1; j < n; ++j) {
      if (std::abs(a[j][i]) > std::abs(a[best][i])) best = j;
    }
    if (std::abs(a[best][i]) <= 1e-12 * scale) return std::nullopt;
    std::swap(a[i], a[best]);
    for (size_t j = 0; j < n; ++j) {
      if (j == i) continue;
      const double factor = a[j][i] / a[i][i];
      for (size_t c = i; c <= n; ++c) a[j][c] -= factor * a[i][c];
    }
  }
  Row terms{};
  for (size_t i = 0; i < n; ++i) {
    const double term = a[i][n] / a[i][i];
    if (!std::isfinite(term) || term < 0) return std::nullopt;
    terms[static_cast<size_t>(active[i])] = term;
  }
  return terms;
}

}  // namespace

double ScalingCurve::Seconds(int units) const { return fixed + divided / units + doubling * std::log2(units); }

ScalingCurve FitScaling(std::span<const SizeMeasure> measures) {
  std::vector<Row> rows;
  std::vector<double> values, weights;
  std::set<int> sizes;
  double noise = 0;
  for (const SizeMeasure& measure : measures) {
    const double spread = std::max(measure.spread, kLeastSpread);
    rows.push_back(RowOf(measure.units));
    values.push_back(measure.seconds);
    weights.push_back(1 / std::pow(spread * measure.seconds, 2));
    sizes.insert(measure.units);
    noise += spread * spread;
  }
  noise /= static_cast<double>(measures.size());
  // In the order of preference: of equally good ones the first.
  static const std::vector<std::vector<int>> kChoices = {{1}, {0, 1}, {1, 2}, {0}, {2}, {0, 2}, {0, 1, 2}};
  Row best{};
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<int>& active : kChoices) {
    if (active.size() > sizes.size()) continue;
    const std::optional<Row> terms = Solve(rows, values, weights, active);
    if (!terms) continue;
    double error = 0;
    for (size_t p = 0; p < rows.size(); ++p) {
      double seconds = 0;
      for (size_t t = 0; t < kTerms; ++t) seconds += (*terms)[t] * rows[p][t];
      error += weights[p] * std::pow(seconds - values[p], 2);
    }
    if (error < least * (1 - 1e-9) - 1e-12) {
      least = error;
      best = *terms;
    }
  }
  ScalingCurve curve;
  curve.fixed = best[0];
  curve.divided = best[1];
  curve.doubling = best[2];
  curve.sizes = static_cast<int>(sizes.size());
  double residual = 0;
  for (const SizeMeasure& measure : measures) {
    residual += std::pow(curve.Seconds(measure.units) / measure.seconds - 1, 2);
  }
  curve.spread = std::sqrt(noise + residual / static_cast<double>(measures.size()));
  return curve;
}

}  // namespace medley::model
