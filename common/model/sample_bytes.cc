#include "common/model/sample_bytes.h"

#include <algorithm>

namespace medley::model {
namespace {

SampleNumbers NumbersOfArrays(const SchemaSpec& schema) {
  SampleNumbers numbers{.labels = schema.label_count};
  for (const InputSpec& input : schema.inputs) {
    int64_t count = 1;
    for (const int64_t size : input.shape) count *= size;
    (input.type == "float32" ? numbers.numerics : numbers.fields) += static_cast<int>(count);
  }
  return numbers;
}

}  // namespace

SampleNumbers NumbersOf(const SchemaSpec& schema) {
  if (schema.categorical.empty() && schema.numeric.empty() && !schema.inputs.empty()) return NumbersOfArrays(schema);
  const int numerics = static_cast<int>(schema.numeric.size());
  const int labels = std::max<int>(1, static_cast<int>(schema.label_columns.size()));
  return {static_cast<int>(schema.categorical.size()) + (schema.numeric_buckets > 0 ? numerics : 0), numerics, labels};
}

int64_t SampleBytes(const SchemaSpec& schema) {
  const SampleNumbers numbers = NumbersOf(schema);
  const bool weighed = schema.weight_column >= 0 || !schema.names.weight.empty();
  return int64_t{4} * (numbers.fields + numbers.numerics + numbers.labels + (weighed ? 1 : 0));
}

}  // namespace medley::model
