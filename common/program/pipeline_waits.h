// How often the stages of a pipeline wait for what passes between them. Pure.
#pragma once

#include <algorithm>

#include "common/model/synchronisation.h"

namespace medley::program {

// How often a stage waits in a step for the copy of a micro-batch to the next stage, there and back, as a part of the
// micro-batches of the step; for stages of equal time, and copies that take no longer than they compute.
//
// While a pipeline fills and drains each boundary is passed once: stages - 1 waits. The first stage of 1F1B has no more
// than `stages` micro-batches under way, which pass all boundaries before more may follow, and those that fill a
// synchronous step return one after the other. Does not decrease with `stages`. `micro_batches`: of a step; 0: unknown,
// then synchronous stages do not wait.
inline double WaitsForCopies(model::ScheduleKind schedule, int micro_batches, int stages) {
  const double s = stages, m = micro_batches;
  if (schedule == model::ScheduleKind::kAsync1F1B) return (s - 1) / s;
  if (micro_batches == 0) return 0;
  if (schedule == model::ScheduleKind::kGpipe) return (s - 1) / m;
  return ((s - 1) * std::max(1.0, m / s) + std::max(0.0, std::min(m, s) - 2)) / m;
}

}  // namespace medley::program
