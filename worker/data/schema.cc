#include "worker/data/schema.h"

#include <algorithm>

namespace medley::worker {

SampleShape ShapeOf(const model::SchemaSpec& schema) {
  const int numerics = static_cast<int>(schema.numeric.size());
  const int labels = std::max<int>(1, static_cast<int>(schema.label_columns.size()));
  return {static_cast<int>(schema.categorical.size()) + (schema.numeric_buckets > 0 ? numerics : 0), numerics, labels};
}

}  // namespace medley::worker
