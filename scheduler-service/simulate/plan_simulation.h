// Compiles, times and counts a plan: what `medley simulate` and the scheduling service show of it. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <stop_token>
#include <vector>

#include "common/model/forward.h"
#include "common/model/order_entry.h"
#include "common/program/memory.h"
#include "common/program/program.h"
#include "scheduler-service/simulate/from_profile.h"
#include "scheduler-service/simulate/program_bound.h"
#include "scheduler-service/simulate/simulate.h"

namespace medley::sched {

// The same for every figure of a plan, so that all who simulate it say the same.
inline constexpr int kSimulatedSteps = 10;

struct PlanSimulationOptions {
  int samples = 0;              // of a step; 0: the profile's batch
  int steps = kSimulatedSteps;  // at least; more where quotas hold devices up, or only some steps agree
  bool rank = false;            // order the operations by upward rank (rank.h)
  int64_t max_spans = 0;  // 0: no timeline. A timeline has the last kTimelineSteps steps, which are in steady state
  int64_t max_instructions = program::kMaxInstructions;  // of a step
  const DeviceLinks* links = nullptr;                    // null: the profile's
  double quota_period_seconds = 0;                       // of units with a CPU quota; 0: as the profile says
  bool count_memory = true;
  bool bound = false;
  std::stop_token stop;
};
inline constexpr int kTimelineSteps = 3;

struct PlanSimulation {
  program::Program program;
  Simulation simulation;
  std::vector<program::DeviceMemory> memory;  // by device
  std::vector<model::OrderEntry> order;       // with `rank`
  ProgramBound bound;                         // with `bound`
  int samples = 0;

  double throughput() const;             // samples/s; 0 where a step takes no time
  double computes(size_t device) const;  // part of the time, 0 to 1
};

// Errors: those of program::Compile, DurationsFromProfile and Simulate; Cancelled.
absl::StatusOr<PlanSimulation> SimulatePlan(model::ExecutionPlan plan, const model::Profile& profile,
                                            const PlanSimulationOptions& options);

}  // namespace medley::sched
