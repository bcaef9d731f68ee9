// How busy a plan keeps devices and links (HeteroG, Figure 8).
#pragma once

#include <absl/status/statusor.h>

#include "common/model/forward.h"
#include "scheduler-service/devices/problem.h"

namespace medley::reproductions::heterog {

// Seconds of a step in which the busiest device computes, and in which a device sends, receives or reduces; means over
// the steps of a timeline.
struct Busy {
  double step = 0;
  double computes = 0;
  double communicates = 0;
};
// Errors: those of the simulator.
absl::StatusOr<Busy> BusyIn(const sched::DeviceProblem& problem, const model::ExecutionPlan& plan);

}  // namespace medley::reproductions::heterog
