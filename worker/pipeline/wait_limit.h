// What bounds a wait: a stop token (generation halted, process ends) and a deadline. A plain value.
#pragma once

#include <stop_token>

#include "common/base/clock.h"

namespace medley::worker {

struct WaitLimit {
  std::stop_token stop;
  base::SteadyTime deadline = base::SteadyTime::max();
};

}  // namespace medley::worker
