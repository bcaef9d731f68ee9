// Measures the algorithms of allreduces, from which planners choose what AUTO means (common/model/allreduce.h).
#pragma once

#include <absl/status/statusor.h>

#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/forward.h"
#include "worker/profiler/communication_probe.h"

namespace medley::worker {

// The median of three rounds, in which the algorithms take turns: every algorithm among 2 and 4 replicas, from 4 KiB to
// 16 MiB in ascending order. Each number of replicas has half of `budget` (seconds): no further size is begun when it
// is spent. So at least the smallest size is measured. Errors: the probe's, Cancelled.
absl::StatusOr<std::vector<model::AllreduceMeasurement>> MeasureAllreduces(CommunicationProbe& probe,
                                                                           const base::Clock& clock,
                                                                           const std::string& resource_type,
                                                                           double budget, std::stop_token stop);

}  // namespace medley::worker
