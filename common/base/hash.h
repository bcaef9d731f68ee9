// A stable 64-bit hash (XXH3): the same bytes give the same number on every machine and release.
#pragma once

#include <cstdint>
#include <string_view>

namespace medley::base {

uint64_t Hash64(std::string_view bytes, uint64_t seed = 0);

// 16 hex digits.
std::string HashHex(std::string_view bytes);

}  // namespace medley::base
