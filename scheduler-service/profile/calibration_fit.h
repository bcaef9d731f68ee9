// Corrections of one model from its records. Pure.
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
  std::vector<SeriesFit> series;  // as ModelRecords::series; those with too few observations carry `shared`
  SeriesFit shared;               // of types without observations of their own
  int observations = 0;           // steps
  // Medians over the steps: measured over predicted throughput before and after correction, relative error after.
  double ratio_uncorrected = 1;
  double ratio_corrected = 1;
  double relative_error = 0;
};

// `window`: newest observations of a series that count.
ModelFit FitModel(const ModelRecords& records, int window, const FitOptions& options);

}  // namespace medley::sched
