#include "common/base/hex.h"

#include <charconv>
#include <cstddef>
#include <cstdint>

#include "common/base/status.h"

namespace medley::base {

std::string HexOf(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    hex += kDigits[static_cast<uint8_t>(byte) >> 4];
    hex += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return hex;
}

absl::StatusOr<std::string> BytesOfHex(std::string_view hex) {
  if (hex.size() % 2 != 0) return InvalidArgument("{} hexadecimal digits are no whole bytes", hex.size());
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (size_t i = 0; i < hex.size(); i += 2) {
    uint8_t byte = 0;
    const char* end = hex.data() + i + 2;
    const auto [stop, error] = std::from_chars(hex.data() + i, end, byte, 16);
    if (error != std::errc() || stop != end) return InvalidArgument("position {}: no hexadecimal digits", i);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace medley::base
