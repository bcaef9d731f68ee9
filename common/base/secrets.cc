#include "common/base/secrets.h"

#include <fmt/format.h>

#include "common/base/rng.h"

namespace medley::base {

std::string RandomToken() {
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:016x}", SystemSeed());
  return token;
}

bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

}  // namespace medley::base
