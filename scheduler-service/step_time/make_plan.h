// From a request with Objective::kStepTime to its answer.
#pragma once

#include <absl/status/statusor.h>

#include <stop_token>

#include "common/base/clock.h"
#include "common/model/planning.h"
#include "scheduler-service/step_time/planner.h"

namespace medley::sched {

// Runs the planner that the request names, checks its plan and times it once more. Returns the plan with the
// alternatives that a user compares (the fastest single device, all devices with equal shares), or the reasons why none
// fits. At the end of the time budget, at `deadline` or when `stop` is requested, returns the best plan found so far.
// Errors: InvalidArgument (invalid request, unknown planner). Thread-safe.
absl::StatusOr<model::PlanResult> MakeStepTimePlan(const model::PlanRequest& request, const StepTimeRegistry& planners,
                                                   const base::Clock& clock, std::stop_token stop,
                                                   base::SteadyTime deadline = base::SteadyTime::max());

}  // namespace medley::sched
