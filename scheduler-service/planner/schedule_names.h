// Reads schedules that come from outside, as names of resource types. Pure, thread-safe.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <span>
#include <string>
#include <vector>

#include "scheduler-service/cost/problem.h"

namespace medley::sched {

// The stages, without units, of a schedule that names the resource type of each layer. Errors: InvalidArgument with the
// path of the entry ("schedule[3]"): one entry for each layer, of the request's resources, with a profile of the layer.
absl::StatusOr<std::vector<StageChoice>> ReadSchedule(const Problem& problem, std::span<const std::string> schedule);

// Sets the units of each stage. Errors: InvalidArgument with the path of the entry ("units[0]") for another number of
// entries than stages, and for one below 1.
absl::Status SetUnits(std::span<const int> units, std::vector<StageChoice>& stages);

}  // namespace medley::sched
