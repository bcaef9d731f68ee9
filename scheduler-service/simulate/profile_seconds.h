// What a part of a profile's batch takes. Pure; internal to scheduler-service/simulate.
#pragma once

#include <algorithm>

#include "common/model/model.h"

namespace medley::sched {

// Seconds of a share of the profile's batch in the long run, without the processor time of the synchronisation.
inline double OwnSeconds(const model::LayerProfile& times, double share) {
  const double all =
      (1 - times.compute_parallel) * times.compute_seconds + times.compute_parallel * times.compute_seconds * share;
  return std::max(0.0, all - times.sync_processor_seconds);
}

// (1 - beta) seconds + beta seconds / units.
inline double Shared(double seconds, double parallel, int units) {
  return (1 - parallel) * seconds + parallel * seconds / units;
}

}  // namespace medley::sched
