// Bytes as hexadecimal digits.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

namespace medley::base {

// Two lower-case digits a byte.
std::string HexOf(std::string_view bytes);

// The reverse; digits of both cases. InvalidArgument: an odd number of digits, or another character.
absl::StatusOr<std::string> BytesOfHex(std::string_view hex);

}  // namespace medley::base
