#include "scheduler-service/profile/calibration_fit.h"

#include <algorithm>
#include <cmath>

namespace medley::sched {
namespace {

struct SeriesPoints {
  std::vector<CostPoint> compute;  // newest first
  std::vector<CostPoint> comm;
};

std::vector<SeriesPoints> Gather(const ModelRecords& records, size_t window) {
  std::vector<SeriesPoints> points(records.series.size());
  for (auto step = records.steps.rbegin(); step != records.steps.rend(); ++step) {
    for (const StageRecord& stage : step->stages) {
      SeriesPoints& to = points[stage.series];
      if (to.compute.size() < window) to.compute.push_back(stage.compute);
      if (stage.comm.measured > 0 && to.comm.size() < window) to.comm.push_back(stage.comm);
    }
  }
  return points;
}

// The median factor by which the fit multiplies the predictions of the points.
double Typical(const std::vector<CostPoint>& points, const CostFit& fit) {
  std::vector<double> factors;
  for (const CostPoint& p : points) {
    if (p.Predicted() > 0) factors.push_back(fit.Apply(p) / p.Predicted());
  }
  return factors.empty() ? 1 : MedianOf(std::move(factors));
}

double StepSeconds(const StepRecord& step, const std::vector<SeriesFit>& fits) {
  double seconds = 0;
  for (const StageRecord& stage : step.stages) {
    const SeriesFit& fit = fits[stage.series];
    seconds = std::max({seconds, fit.compute.Apply(stage.compute), fit.comm.Apply(stage.comm)});
  }
  return seconds;
}

struct Accuracy {
  double ratio = 1;
  double error = 0;
};

// `points` have the predicted and measured seconds of steps. Throughput is inversely proportional to them.
Accuracy AccuracyOf(const std::vector<CostPoint>& points, double factor) {
  std::vector<double> ratios;
  std::vector<double> errors;
  for (const CostPoint& p : points) {
    const double predicted = p.Predicted() * factor;
    if (!(predicted > 0)) continue;
    ratios.push_back(predicted / p.measured);
    errors.push_back(std::abs(1 - p.measured / predicted));
  }
  if (ratios.empty()) return {};
  return {MedianOf(std::move(ratios)), MedianOf(std::move(errors))};
}

std::vector<CostPoint> StepPoints(const ModelRecords& records, const std::vector<SeriesFit>& fits) {
  std::vector<CostPoint> points;
  for (const StepRecord& step : records.steps) points.push_back({0, StepSeconds(step, fits), step.seconds});
  return points;
}

void Scale(CostFit& fit, double factor, const FitOptions& options) {
  fit.stays = std::clamp(fit.stays * factor, 1 / options.max_factor, options.max_factor);
  fit.divides = std::clamp(fit.divides * factor, 1 / options.max_factor, options.max_factor);
}

// How much of its own correction one type can say of the others: as much as the errors of predictions of a whole
// machine are (docs/design/profiles.md). A larger error is that of its own profile, as far as one can know.
constexpr double kMostOfOne = 1.25;

double SharedFactor(std::vector<double> factors) {
  if (factors.empty()) return 1;
  if (factors.size() == 1) return std::clamp(factors.front(), 1 / kMostOfOne, kMostOfOne);
  return MedianOf(std::move(factors));
}

// The correction for types without observations: the median of the others' corrections; of a single other type, what
// is within kMostOfOne.
SeriesFit Shared(const std::vector<SeriesPoints>& points, const std::vector<SeriesFit>& fits, int min_points) {
  std::vector<double> compute;
  std::vector<double> comm;
  for (size_t s = 0; s < fits.size(); ++s) {
    if (std::ssize(points[s].compute) >= min_points) compute.push_back(Typical(points[s].compute, fits[s].compute));
    if (std::ssize(points[s].comm) >= min_points) comm.push_back(Typical(points[s].comm, fits[s].comm));
  }
  const double c = SharedFactor(std::move(compute));
  const double m = SharedFactor(std::move(comm));
  return {0, {c, c}, {m, m}};
}

double LogFactor(const CostFit& fit) { return (std::log(fit.stays) + std::log(fit.divides)) / 2; }

CostFit MiddleCost(std::vector<CostFit> fits) {
  if (fits.empty()) return {};
  std::sort(fits.begin(), fits.end(), [](const CostFit& a, const CostFit& b) { return LogFactor(a) < LogFactor(b); });
  const CostFit& upper = fits[fits.size() / 2];
  const CostFit& lower = fits[(fits.size() - 1) / 2];
  return std::abs(LogFactor(lower)) <= std::abs(LogFactor(upper)) ? lower : upper;
}

}  // namespace

SeriesFit MiddleOf(const std::vector<SeriesFit>& fits) {
  std::vector<CostFit> compute, comm;
  SeriesFit middle;
  for (const SeriesFit& fit : fits) {
    compute.push_back(fit.compute);
    comm.push_back(fit.comm);
    middle.observations += fit.observations;
  }
  middle.compute = MiddleCost(std::move(compute));
  middle.comm = MiddleCost(std::move(comm));
  return middle;
}

SeriesFit Clamped(SeriesFit fit, double most) {
  for (double* factor : {&fit.compute.stays, &fit.compute.divides, &fit.comm.stays, &fit.comm.divides}) {
    *factor = std::clamp(*factor, 1 / most, most);
  }
  return fit;
}

ModelFit FitModel(const ModelRecords& records, int window, const FitOptions& options) {
  ModelFit fit;
  fit.observations = static_cast<int>(records.steps.size());
  fit.series.resize(records.series.size());
  const std::vector<SeriesPoints> points = Gather(records, static_cast<size_t>(window));
  for (size_t s = 0; s < points.size(); ++s) {
    fit.series[s].observations = static_cast<int>(points[s].compute.size());
  }
  const std::vector<SeriesFit> uncorrected = fit.series;
  const Accuracy before = AccuracyOf(StepPoints(records, uncorrected), 1);
  fit.ratio_uncorrected = before.ratio;
  for (size_t s = 0; s < points.size(); ++s) {
    fit.series[s].compute = FitCosts(points[s].compute, options);
    fit.series[s].comm = FitCosts(points[s].comm, options);
  }
  fit.shared = Shared(points, fit.series, options.min_points);
  for (size_t s = 0; s < points.size(); ++s) {
    if (std::ssize(points[s].compute) < options.min_points) fit.series[s].compute = fit.shared.compute;
    if (std::ssize(points[s].comm) < options.min_points) fit.series[s].comm = fit.shared.comm;
  }
  // One factor per model corrects the remaining difference between whole steps and their slowest stage.
  const std::vector<CostPoint> steps = StepPoints(records, fit.series);
  const double rest = FitCosts(steps, options).divides;
  const Accuracy after = AccuracyOf(steps, rest);
  if (after.error > before.error) {  // the corrections improve stages but not whole steps, so discard them
    fit.series = uncorrected;
    fit.shared = {};
    fit.ratio_corrected = before.ratio;
    fit.relative_error = before.error;
    return fit;
  }
  for (SeriesFit& series : fit.series) {
    Scale(series.compute, rest, options);
    Scale(series.comm, rest, options);
  }
  Scale(fit.shared.compute, rest, options);
  Scale(fit.shared.comm, rest, options);
  fit.ratio_corrected = after.ratio;
  fit.relative_error = after.error;
  return fit;
}

}  // namespace medley::sched
