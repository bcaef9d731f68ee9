// Times plans by the simulator, or by what the limits measure with. Not thread-safe; the problem must outlive it.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <stop_token>

#include "common/model/forward.h"
#include "scheduler-service/simulate/plan_simulation.h"
#include "scheduler-service/step_time/planner.h"
#include "scheduler-service/step_time/problem.h"

namespace medley::sched {

class StepTimeEvaluator {
 public:
  StepTimeEvaluator(const StepTimeProblem& problem, std::stop_token stop) : problem_(problem), stop_(stop) {}
  // With what the limits measure with.
  StepTimeEvaluator(const StepTimeProblem& problem, const SearchLimits& limits)
      : problem_(problem), stop_(limits.stop()), measure_(limits.measure()) {}

  // Seconds of a step of the plan in steady state. Errors: ResourceExhausted where a device lacks memory, naming it, or
  // for a plan that is too large to simulate it beside others; FailedPrecondition for one that breaks a bound of the
  // problem's request, with the figures; those of program::Compile; Cancelled. A plan that can be simulated may be
  // measured, with the errors of that.
  absl::StatusOr<double> Seconds(const model::ExecutionPlan& plan);
  // The simulation with the timeline of its last steps, never a measurement. Errors: as Seconds.
  absl::StatusOr<PlanSimulation> Timeline(const model::ExecutionPlan& plan);
  // What a step of the plan takes at least, and what holds it up, by the simulation. Errors: as Seconds.
  absl::StatusOr<ProgramBound> Bound(const model::ExecutionPlan& plan);

  int64_t calls() const { return calls_; }

 private:
  absl::StatusOr<PlanSimulation> Simulated(const model::ExecutionPlan& plan, int64_t max_spans, bool bound = false);

  const StepTimeProblem& problem_;
  const std::stop_token stop_;
  const SearchLimits::Measure measure_;
  int64_t calls_ = 0;
};

}  // namespace medley::sched
