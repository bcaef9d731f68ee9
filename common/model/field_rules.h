// The bounds and enumerations of the CRD's schema (job_schema.h), for values that code made and no schema has checked.
// A path is that of the field: "spec.model.layers[3].out"; "[]" and "{}" are any item of a list and any value of a
// map. A path that the schema does not have is a bug. Used by the validation of job_spec.h. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <concepts>
#include <cstddef>
#include <string_view>

namespace medley::model {

// InvalidArgument that names the field, unless the value is one of the field's.
absl::Status OneOf(std::string_view path, std::string_view value);

// The same, unless the field's minimum <= value <= its maximum. Integers are exact up to 2^53.
absl::Status InBounds(std::string_view path, double value);
template <std::integral Int>
absl::Status InBounds(std::string_view path, Int value) {
  return InBounds(path, static_cast<double>(value));
}

// The same, unless a list of the field may have so many items.
absl::Status ItemsInBounds(std::string_view path, size_t items);

// The field's maximum.
double Most(std::string_view path);

}  // namespace medley::model
