// Samples in the form that layers take: row-major arrays, without torch. Plain values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace medley::worker {

// The number of features and labels of every sample. ShapeOf (worker/data/schema.h) computes it from spec.data.schema
// alone.
struct SampleShape {
  int fields = 0;    // categorical ids per sample; those of bucketed numeric columns come last
  int numerics = 0;  // numeric features per sample
  int labels = 1;    // labels per sample; several for Task::kMultiLabel, and for arrays of Task::kRegression
  bool operator==(const SampleShape&) const = default;
};

// The lists of samples, as bits: the i-th list is 1 << i.
enum RowParts : unsigned { kNoParts = 0, kIds = 1, kNumerics = 2, kLabels = 4, kWeights = 8, kAllParts = 15 };

// Does not own its data. `ids` are rows of the embedding table, or, where a comment says so, positions among the step's
// distinct rows.
struct BatchView {
  int samples = 0;
  std::span<const int32_t> ids;     // samples x fields
  std::span<const float> numerics;  // samples x numerics
  // samples x labels: 0 or 1; Task::kMultiClass: the number of the class; Task::kRegression: the standardised number.
  std::span<const float> labels;
  std::span<const float> weights;  // of the samples, whose mean over the training data is 1; empty: each has weight 1
};

struct Batch {
  SampleShape shape;
  int samples = 0;
  std::vector<int32_t> ids;
  std::vector<float> numerics;
  std::vector<float> labels;
  std::vector<float> weights;  // samples, or none

  // Samples [first, first + count).
  BatchView View(int first, int count) const {
    const auto at = [](const auto& values, int width, int f, int n) {
      return std::span(values).subspan(static_cast<size_t>(f) * static_cast<size_t>(width),
                                       static_cast<size_t>(n) * static_cast<size_t>(width));
    };
    return {count, at(ids, shape.fields, first, count), at(numerics, shape.numerics, first, count),
            at(labels, shape.labels, first, count), at(weights, weights.empty() ? 0 : 1, first, count)};
  }
};

}  // namespace medley::worker
