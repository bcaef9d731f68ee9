// How busy a plan keeps devices and links (HeteroG, Figure 8).
#pragma once

#include <absl/status/statusor.h>

#include "common/model/forward.h"
#include "scheduler-service/step_time/problem.h"

namespace medley::bench {

// Seconds of a step in which the busiest device computes, and in which a device sends, receives or reduces; means over
// the steps of a timeline.
struct Busy {
  double step = 0;
  double computes = 0;
  double communicates = 0;
};
// Errors: those of the simulator.
absl::StatusOr<Busy> BusyIn(const sched::StepTimeProblem& problem, const model::ExecutionPlan& plan);

}  // namespace medley::bench
