// Durations of the tests of simulations.
#pragma once

#include "scheduler-service/simulate/durations.h"

namespace medley::sched {

inline constexpr double kNear = 1e-9;

// Forward passes take 1 s, backward passes 2 s on every device; nothing else takes time.
inline Durations OneAndTwo(const program::Program& program) {
  Durations durations = NoTime(program);
  for (auto& block : durations.passes) {
    for (Durations::Passes& passes : block) passes = {{1, 0}, {2, 0}, 0};
  }
  return durations;
}

}  // namespace medley::sched
