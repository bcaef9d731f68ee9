// Scales the timeout of a test's wait to the build.
//
// Timeouts in tests only detect hangs. Programs run several times slower under a sanitizer, so the build sets the
// factor in the environment variable MEDLEY_TEST_PATIENCE (1 without sanitizers).
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
