// Times plans by the simulator. Not thread-safe; the problem must outlive it.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <stop_token>

#include "common/model/execution_plan.h"
#include "scheduler-service/step_time/problem.h"

namespace medley::sched {

class StepTimeEvaluator {
 public:
  StepTimeEvaluator(const StepTimeProblem& problem, std::stop_token stop) : problem_(problem), stop_(stop) {}

  // Seconds of a step of the plan in steady state. Errors: ResourceExhausted where a device lacks memory, naming it, or
  // for a plan that is too large to simulate it beside others; those of program::Compile; Cancelled.
  absl::StatusOr<double> Seconds(const model::ExecutionPlan& plan);

  int64_t calls() const { return calls_; }

 private:
  const StepTimeProblem& problem_;
  const std::stop_token stop_;
  int64_t calls_ = 0;
};

}  // namespace medley::sched
