// What is done to numeric columns, fitted on the training data: standardised log, and quantile
// buckets.
//
//   z = (t(x) - mean) / deviation,  t(x) = sign(x) * log(1 + |x|) for a column whose values are
//   skewed, x otherwise
// A missing value is the mean (z = 0) and has a bucket of its own. Immutable values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace medley::worker {

struct NumericTransform {
  bool log = false;
  float mean = 0;               // of t(x)
  float inverse_deviation = 0;  // 0: constant column
  std::vector<float> edges;     // of x, ascending; bucket = number of edges <= x; empty: no buckets

  float Standardize(float x) const;  // NaN is a missing value
  int Bucket(float x) const;         // edges.size() + 1 for a missing value
};

struct Transform {
  std::vector<NumericTransform> columns;  // in the order of schema.numeric
};

// `values` may hold NaN (missing); they are not kept. `buckets` 0: no edges. Deterministic.
NumericTransform FitNumeric(std::span<const float> values, int buckets);

}  // namespace medley::worker
