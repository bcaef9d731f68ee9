#include "common/base/secrets.h"

#include <fmt/format.h>

#include "common/base/rng.h"

namespace medley::base {

std::string RandomToken() {
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:016x}", SystemSeed());
  return token;
}

}  // namespace medley::base
