// Range checks of numbers in validated values. An error names the field's path.
#pragma once

#include <absl/status/status.h>

#include <cmath>
#include <string>

#include "common/base/status.h"

namespace medley::model {

inline absl::Status CheckPositive(double value, const std::string& path) {
  if (std::isfinite(value) && value > 0) return absl::OkStatus();
  return base::InvalidArgument("{}: must be finite and greater than 0, is {}", path, value);
}

inline absl::Status CheckNotNegative(double value, const std::string& path) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return base::InvalidArgument("{}: must be finite and not negative, is {}", path, value);
}

}  // namespace medley::model
