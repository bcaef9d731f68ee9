#include "worker/data/schema.h"

#include <algorithm>

namespace medley::worker {

namespace {

// Inputs of columns are in the lists of columns.
SampleShape ShapeOfArrays(const model::SchemaSpec& schema) {
  SampleShape shape{.labels = schema.label_count};
  for (const model::InputSpec& input : schema.inputs) {
    int64_t count = 1;
    for (const int64_t size : input.shape) count *= size;
    (input.type == "float32" ? shape.numerics : shape.fields) += static_cast<int>(count);
  }
  return shape;
}

}  // namespace

SampleShape ShapeOf(const model::SchemaSpec& schema) {
  if (schema.categorical.empty() && schema.numeric.empty() && !schema.inputs.empty()) return ShapeOfArrays(schema);
  const int numerics = static_cast<int>(schema.numeric.size());
  const int labels = std::max<int>(1, static_cast<int>(schema.label_columns.size()));
  return {static_cast<int>(schema.categorical.size()) + (schema.numeric_buckets > 0 ? numerics : 0), numerics, labels};
}

}  // namespace medley::worker
