// From a request for a plan on devices (PlanRequest::on_devices) to its answer.
#pragma once

#include <absl/status/statusor.h>

#include <stop_token>

#include "common/base/clock.h"
#include "common/model/forward.h"
#include "scheduler-service/step_time/planner.h"

namespace medley::sched {

// Runs the planner that the request names on the devices that its objective and bounds allow (choose.h), and times the
// plan once more. Returns the plan with the alternatives that a user compares (the fastest single device, all devices
// with equal shares), or the reasons why none keeps the bounds. Prices must be filled in; devices without a price are a
// reason where the objective or a bound is about money (constraint "price"). At the end of the time budget, at
// `deadline` or when `stop` is requested, returns the best plan found so far.
// Errors: InvalidArgument (invalid request, unknown planner). Thread-safe.
absl::StatusOr<model::PlanResult> MakeStepTimePlan(const model::PlanRequest& request, const StepTimeRegistry& planners,
                                                   const base::Clock& clock, std::stop_token stop,
                                                   base::SteadyTime deadline = base::SteadyTime::max());

}  // namespace medley::sched
