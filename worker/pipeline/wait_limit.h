// The bounds of a wait: a deadline, and a stop token (requested when the generation halts or the process ends). A plain
// value.
#pragma once

#include <stop_token>

#include "common/base/clock.h"

namespace medley::worker {

struct WaitLimit {
  std::stop_token stop;
  base::SteadyTime deadline = base::SteadyTime::max();
};

}  // namespace medley::worker
