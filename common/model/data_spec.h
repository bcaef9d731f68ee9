// The parts of spec.data: where samples come from, and what their columns or arrays mean. The structs are made from the
// CRD's schema (data_fields.h). Immutable values, pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "common/model/data_fields.h"

namespace medley::model {

// The files that are only evaluated, in the order of their use: without validation data, test data are these too.
inline std::vector<SourceSpec> EvaluationSources(const DataSpec& data) {
  std::vector<SourceSpec> sources;
  if (data.validation && data.validation->fraction <= 0) sources.push_back(data.validation->source);
  if (data.test) sources.push_back(*data.test);
  return sources;
}

// What the i-th numeric column holds.
inline ColumnPart PartOf(const SchemaSpec& schema, size_t i) {
  return i < schema.parts.size() ? schema.parts[i] : ColumnPart::kValue;
}

}  // namespace medley::model
