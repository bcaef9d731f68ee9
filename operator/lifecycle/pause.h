// A time for which something is not tried again. An edit of the job's spec ends it. A value.
#pragma once

#include <cstdint>

#include "common/base/clock.h"

namespace medley::ops::lifecycle {

struct Pause {
  base::SteadyTime until{};
  int64_t spec_generation = 0;  // metadata.generation when the pause began
};

}  // namespace medley::ops::lifecycle
