// A stable 64-bit hash (XXH3): equal bytes have equal hashes on every machine and in every release.
#pragma once

#include <cstdint>
#include <string_view>

namespace medley::base {

uint64_t Hash64(std::string_view bytes, uint64_t seed = 0);

// The hash as 16 hexadecimal digits.
std::string HashHex(std::string_view bytes);

}  // namespace medley::base
