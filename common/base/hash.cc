#include "common/base/hash.h"

#include <fmt/core.h>
#include <xxhash.h>

namespace medley::base {

uint64_t Hash64(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::string HashHex(std::string_view bytes) { return fmt::format("{:016x}", Hash64(bytes)); }

}  // namespace medley::base
