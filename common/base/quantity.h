// Kubernetes quantities: "500m", "16Gi", "4", "1e3", "2.42". Money in manifests is a quantity as well.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace medley::base {

// The value as a double (suffixes n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or a decimal exponent).
// Errors: InvalidArgument for anything else, for a sign without digits, and for overflow.
absl::StatusOr<double> ParseQuantity(std::string_view text);

// Rounded up to whole bytes; refuses negative values.
absl::StatusOr<int64_t> ParseBytes(std::string_view text);

// The shortest decimal that is `value` to `digits` places, without trailing zeros ("2.42", "0.0345").
std::string FormatDecimal(double value, int digits);

}  // namespace medley::base
