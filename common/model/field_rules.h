// Rules that several fields of a spec have. Used by the validation of job_spec.h.
#pragma once

#include <absl/status/status.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "common/base/status.h"

namespace medley::model {

// InvalidArgument that names the field by its `path`, unless the value is one of those known.
template <size_t N>
absl::Status OneOf(std::string_view path, std::string_view value, const std::array<const char*, N>& known) {
  if (std::ranges::find(known, value) != known.end()) return absl::OkStatus();
  return base::InvalidArgument("{}: '{}' is not one of {}", path, value, fmt::join(known, ", "));
}

// The same, unless low <= value <= high.
template <typename Number>
absl::Status InRange(std::string_view path, Number value, Number low, Number high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return base::InvalidArgument("{}: {} is not between {} and {}", path, value, low, high);
}

}  // namespace medley::model
