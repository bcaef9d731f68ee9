// How far the predictions for a model were from what was measured. Immutable values.
#pragma once

#include <string>
#include <vector>

namespace medley::model {

// The factors that observations led to for one resource type: profiled seconds are multiplied by them. 1: unchanged.
struct Correction {
  std::string resource_type;
  double compute = 1;
  double comm = 1;
  int observations = 0;
  bool operator==(const Correction&) const = default;
};

// How predictions of a model compare with measurements.
struct Prediction {
  int observations = 0;
  double ratio_uncorrected = 1;  // median of measured over predicted throughput
  double ratio_corrected = 1;    // the same after the corrections
  double relative_error = 0;     // median of |measured - predicted| / measured, after the corrections
  std::vector<Correction> corrections;
  bool operator==(const Prediction&) const = default;
};

}  // namespace medley::model
