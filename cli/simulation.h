// Simulates a plan and shows it: what the commands `simulate` and `plan` have in common.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "cli/program_input.h"
#include "scheduler-service/simulate/plan_simulation.h"

namespace medley::cli {

// Files to write; empty: none.
struct TimelineFiles {
  std::string trace;  // Chrome trace
  std::string svg;
  bool wanted() const { return !trace.empty() || !svg.empty(); }
};

// Over the links of the input, if it has some. Errors: those of sched::SimulatePlan.
absl::StatusOr<sched::PlanSimulation> SimulateInput(const ProgramInput& input, sched::PlanSimulationOptions options,
                                                    const TimelineFiles& files);
// Use and peak memory of each device; devices that are alike have one row.
std::string DeviceTable(const sched::PlanSimulation& simulated);
// Errors: those of writing. What the timeline leaves out is said on standard error, by `command`.
absl::Status WriteTimeline(const std::string& command, const sched::PlanSimulation& simulated,
                           const ProgramInput& input, const TimelineFiles& files);

}  // namespace medley::cli
