#include "worker/data/schema.h"

#include "common/model/sample_bytes.h"

#include <algorithm>

namespace medley::worker {

SampleShape ShapeOf(const model::SchemaSpec& schema) {
  const model::SampleNumbers numbers = model::NumbersOf(schema);
  return {numbers.fields, numbers.numerics, numbers.labels};
}

bool HasWeights(const model::SchemaSpec& schema) { return schema.weight_column >= 0 || !schema.names.weight.empty(); }

}  // namespace medley::worker
