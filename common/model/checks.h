// Range checks of numbers in validated values. An error names the field's path.
#pragma once

#include <absl/status/status.h>

#include <cmath>
#include <string>

#include "common/base/status.h"

namespace medley::model {

// No number of ours is larger: 10^18 bytes are an exabyte, 10^18 seconds are twice the age of the universe. Products of
// a few such numbers are finite.
inline constexpr double kMaxNumber = 1e18;

inline absl::Status CheckAtMost(double value, double most, const std::string& path) {
  if (value <= most) return absl::OkStatus();
  return base::InvalidArgument("{}: must be at most {}, is {}", path, most, value);
}

inline absl::Status CheckPositive(double value, const std::string& path) {
  if (std::isfinite(value) && value > 0) return CheckAtMost(value, kMaxNumber, path);
  return base::InvalidArgument("{}: must be finite and greater than 0, is {}", path, value);
}

inline absl::Status CheckNotNegative(double value, const std::string& path) {
  if (std::isfinite(value) && value >= 0) return CheckAtMost(value, kMaxNumber, path);
  return base::InvalidArgument("{}: must be finite and not negative, is {}", path, value);
}

// Most USD per hour that a unit or an instance may cost, as in the CRD of ResourcePool: more than any machine does, and
// little enough that the cost of the largest plan is finite.
inline constexpr double kMaxPricePerHour = 1e9;

inline absl::Status CheckPrice(double value, const std::string& path) {
  if (value <= kMaxPricePerHour) return CheckNotNegative(value, path);
  return base::InvalidArgument("{}: must be at most {} USD per hour, is {}", path, kMaxPricePerHour, value);
}

}  // namespace medley::model
