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
// The least that a source of prices may name: less than any machine costs, and enough to be written as a decimal.
inline constexpr double kMinPricePerHour = 1e-9;
// The least price of a unit other than 0: that of a part of the cheapest instance.
inline constexpr double kMinPricePerUnitHour = kMinPricePerHour * 1e-6;

// Whether a source may name this price. False for NaN.
inline bool IsSourcePrice(double value) { return value >= kMinPricePerHour && value <= kMaxPricePerHour; }

inline absl::Status CheckPrice(double value, const std::string& path) {
  if (value > kMaxPricePerHour) {
    return base::InvalidArgument("{}: must be at most {} USD per hour, is {}", path, kMaxPricePerHour, value);
  }
  if (value > 0 && value < kMinPricePerUnitHour) {
    return base::InvalidArgument("{}: must be 0 or at least {} USD per hour, is {}", path, kMinPricePerUnitHour, value);
  }
  return CheckNotNegative(value, path);
}

}  // namespace medley::model
