// Kubernetes quantities: "500m", "16Gi", "4", "1e3", "2.42". Manifests write amounts of money as quantities too.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace medley::base {

// Returns the value as a double. Suffixes: n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or a decimal exponent.
// Errors: InvalidArgument for any other text, a sign without digits, or a value that overflows.
absl::StatusOr<double> ParseQuantity(std::string_view text);

// Rounds up to whole bytes. Refuses negative values.
absl::StatusOr<int64_t> ParseBytes(std::string_view text);

// Rounds `value` to `digits` decimal places and drops trailing zeros ("2.42", "0.0345").
std::string FormatDecimal(double value, int digits);

}  // namespace medley::base
