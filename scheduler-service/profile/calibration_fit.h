// Computes the corrections of one model from its records. Pure.
#pragma once

#include <vector>

#include "scheduler-service/profile/calibration_records.h"

namespace medley::sched {

struct SeriesFit {
  int observations = 0;
  CostFit compute;
  CostFit comm;
};

struct ModelFit {
  std::vector<SeriesFit> series;  // like ModelRecords::series; those with too few observations have `shared`
  SeriesFit shared;               // for types without observations
  int observations = 0;           // number of steps
  // Medians over the steps: measured / predicted throughput before and after correction; relative error after
  // correction.
  double ratio_uncorrected = 1;
  double ratio_corrected = 1;
  double relative_error = 0;
};

// Uses the `window` newest observations of each series.
ModelFit FitModel(const ModelRecords& records, int window, const FitOptions& options);

// The fit in the middle of several, for compute and comm each, by the factors' size; of an even number the one of the
// two middle ones that is closer to no correction. Without fits: no correction.
SeriesFit MiddleOf(const std::vector<SeriesFit>& fits);

// With all factors within [1 / most, most].
SeriesFit Clamped(SeriesFit fit, double most);

}  // namespace medley::sched
