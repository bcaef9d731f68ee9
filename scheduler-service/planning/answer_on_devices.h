// From a request for a plan on devices (PlanRequest::on_devices) to its answer.
#pragma once

#include <absl/status/statusor.h>

#include <stop_token>

#include "common/base/clock.h"
#include "common/model/forward.h"
#include "common/model/plan_result.h"
#include "scheduler-service/planning/planner.h"

namespace medley::sched {

// Runs the planner on the devices that the objective and the bounds of the request allow (choose_devices.h), and judges
// the plan once more. Returns the plan with the alternatives that a user compares (the fastest single device, all
// devices with equal shares), or the reasons why none keeps the bounds. Prices must be filled in; devices without a
// price are a reason where the objective or a bound is about money (constraint "price"). At the end of the time budget,
// at `deadline` or when `stop` is requested, returns the best plan found so far.
// Errors: InvalidArgument (invalid request). Thread-safe.
absl::StatusOr<model::PlanResult> AnswerOnDevices(const model::PlanRequest& request, const Planner& planner,
                                                  const base::Clock& clock, std::stop_token stop,
                                                  base::SteadyTime deadline = base::SteadyTime::max());

}  // namespace medley::sched
