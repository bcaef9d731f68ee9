// Simulates plans on the devices of a problem. Not thread-safe; the problem must outlive it.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <stop_token>
#include <utility>

#include "common/model/forward.h"
#include "scheduler-service/devices/problem.h"
#include "scheduler-service/simulate/plan_simulation.h"

namespace medley::sched {

class DeviceSimulator {
 public:
  DeviceSimulator(const DeviceProblem& problem, std::stop_token stop) : problem_(problem), stop_(std::move(stop)) {}

  // Seconds of a step of the plan in steady state, whatever the bounds of the problem's request. Errors:
  // ResourceExhausted where a device lacks memory, naming it, or for a plan that is too large to simulate it beside
  // others; those of program::Compile; Cancelled.
  absl::StatusOr<double> Seconds(const model::ExecutionPlan& plan);
  // The simulation with the timeline of its last steps. Errors: as Seconds.
  absl::StatusOr<PlanSimulation> Timeline(const model::ExecutionPlan& plan);
  // What a step of the plan takes at least, and what holds it up. Errors: as Seconds.
  absl::StatusOr<ProgramBound> Bound(const model::ExecutionPlan& plan);

  int64_t calls() const { return calls_; }

 private:
  absl::StatusOr<PlanSimulation> Simulated(const model::ExecutionPlan& plan, int64_t max_spans, bool bound = false);

  const DeviceProblem& problem_;
  const std::stop_token stop_;
  int64_t calls_ = 0;
};

}  // namespace medley::sched
