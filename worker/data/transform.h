// The transforms of numeric columns and of the label, fitted on the training data: standardisation, quantile buckets,
// numbers of classes.
//
//   z = (t(x) - mean) / deviation
//   t(x) = sign(x) * log(1 + |x|) for a column with skewed values, x for others
//
// All in double precision: z is rounded to float32, x is not. A missing value gets the mean (z = 0) and a bucket of its
// own. Immutable values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace medley::worker {

struct NumericTransform {
  bool log = false;
  double mean = 0;               // mean of t(x)
  double inverse_deviation = 0;  // 1 / deviation of t(x); 0 for a constant column
  std::vector<double> edges;     // of x, ascending; bucket = number of edges <= x; empty: no buckets

  float Standardize(double x) const;  // NaN is a missing value
  int Bucket(double x) const;         // edges.size() + 1 for a missing value
};

// What the numbers of labels mean. Task::kRegression: label = mean + deviation * the model's output; with `log` that is
// log(1 + label).
struct LabelTransform {
  double mean = 0;
  double deviation = 1;              // above 0
  std::vector<std::string> classes;  // Task::kMultiClass: the name of class 0, 1, ...
  bool log = false;

  float Standardize(double label) const;  // the model's output that means this label; with `log` it is above -1
  double Number(double output) const;     // the label that an output means; with `log` at least -1 and finite
};

struct Transform {
  std::vector<NumericTransform> columns;  // in the order of schema.numeric
  LabelTransform label;
  std::vector<std::string> header;  // names of all columns of the training data; empty without a header
  double weight_mean = 1;           // of the training data's weights, which are divided by it
  // The numbers were rounded to float32 before they were transformed, as in models that earlier versions trained.
  bool single_precision = false;
};

// Whether float32 is too coarse for numbers with this mean and deviation, such as seconds since 1970.
bool NeedsDouble(double mean, double deviation);

// Fits the transform of one column. NaN in `values` is a missing value and is ignored. With `buckets` 0 there are no
// edges. Deterministic.
NumericTransform FitNumeric(std::span<const double> values, int buckets);
// The same without a copy: reorders `values`.
NumericTransform FitNumericInPlace(std::span<double> values, int buckets);

// Mean and deviation of the labels of Task::kRegression, with `log` of log(1 + label). `labels` is not empty.
// Deterministic.
LabelTransform FitLabel(std::span<const double> labels, bool log = false);

}  // namespace medley::worker
