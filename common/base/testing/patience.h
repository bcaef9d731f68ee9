// How long a test waits for what must happen, on this build.
//
// Bounds of waits are for hangs, not figures: programs under a sanitizer start and run several times slower, and the
// build says how much in MEDLEY_TEST_PATIENCE (1 without sanitizers).
#pragma once

#include <algorithm>
#include <cstdlib>

#include "common/base/clock.h"

namespace medley::base {

template <typename Duration>
Duration Patience(Duration wait) {
  const char* times = std::getenv("MEDLEY_TEST_PATIENCE");
  return wait * (times == nullptr ? 1 : std::max(1, std::atoi(times)));
}

}  // namespace medley::base
