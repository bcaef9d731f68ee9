// Samples in the shape that layers take: row-major, without torch. Plain values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace medley::worker {

// What every sample of a data set has; a function of spec.data.schema alone (worker/data/schema.h:
// ShapeOf).
struct SampleShape {
  int fields = 0;    // categorical ids a sample, the bucketed numeric columns among them (last)
  int numerics = 0;  // numeric features a sample
  bool operator==(const SampleShape&) const = default;
};

// Does not own. `ids` are rows of the embedding table, or positions within a step's distinct rows
// where said so.
struct BatchView {
  int samples = 0;
  std::span<const int32_t> ids;     // samples x fields
  std::span<const float> numerics;  // samples x numerics
  std::span<const float> labels;    // samples; 0 or 1
};

struct Batch {
  SampleShape shape;
  int samples = 0;
  std::vector<int32_t> ids;
  std::vector<float> numerics;
  std::vector<float> labels;

  // Samples [first, first + count).
  BatchView View(int first, int count) const {
    const auto at = [](const auto& values, int width, int f, int n) {
      return std::span(values).subspan(static_cast<size_t>(f) * static_cast<size_t>(width),
                                       static_cast<size_t>(n) * static_cast<size_t>(width));
    };
    return {count, at(ids, shape.fields, first, count), at(numerics, shape.numerics, first, count),
            at(labels, 1, first, count)};
  }
};

}  // namespace medley::worker
