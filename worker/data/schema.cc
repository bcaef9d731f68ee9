#include "worker/data/schema.h"

namespace medley::worker {

SampleShape ShapeOf(const model::SchemaSpec& schema) {
  const int numerics = static_cast<int>(schema.numeric.size());
  return {static_cast<int>(schema.categorical.size()) + (schema.numeric_buckets > 0 ? numerics : 0), numerics};
}

}  // namespace medley::worker
