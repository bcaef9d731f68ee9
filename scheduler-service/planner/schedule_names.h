// Reads schedules that come from outside, as names of resource types. Pure, thread-safe.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <span>
#include <string>
#include <vector>

#include "scheduler-service/cost/problem.h"

namespace medley::sched {

// The stages, without units, of a schedule that names the resource type of each layer: its runs of one type, divided
// before the layers `cuts`. Errors: InvalidArgument with the path of the entry ("schedule[3]"): one entry for each
// layer, of the request's resources, with a profile of the layer; ("cuts[0]"): ascending, each a layer whose type is
// that of the layer before.
absl::StatusOr<std::vector<StageChoice>> ReadSchedule(const Problem& problem, std::span<const std::string> schedule,
                                                      std::span<const int> cuts = {});

// Sets the units of each stage. Errors: InvalidArgument with the path of the entry ("units[0]") for another number of
// entries than stages, and for one below 1.
absl::Status SetUnits(std::span<const int> units, std::vector<StageChoice>& stages);

}  // namespace medley::sched
