// The transform of numeric columns, fitted on the training data: standardisation and quantile buckets.
//
//   z = (t(x) - mean) / deviation
//   t(x) = sign(x) * log(1 + |x|) for a column with skewed values, x for others
//
// A missing value gets the mean (z = 0) and a bucket of its own. Immutable values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace medley::worker {

struct NumericTransform {
  bool log = false;
  float mean = 0;               // mean of t(x)
  float inverse_deviation = 0;  // 1 / deviation of t(x); 0 for a constant column
  std::vector<float> edges;     // of x, ascending; bucket = number of edges <= x; empty: no buckets

  float Standardize(float x) const;  // NaN is a missing value
  int Bucket(float x) const;         // edges.size() + 1 for a missing value
};

struct Transform {
  std::vector<NumericTransform> columns;  // in the order of schema.numeric
};

// Fits the transform of one column. NaN in `values` is a missing value and is ignored. With `buckets` 0 there are no
// edges. Deterministic.
NumericTransform FitNumeric(std::span<const float> values, int buckets);

}  // namespace medley::worker
