// Explains why a request has no feasible plan, with messages that tell the user what to change.
#pragma once

#include <vector>

#include "common/model/forward.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planning/budget.h"

namespace medley::sched {

// The time limit for finding the reasons why no plan exists, in seconds.
inline constexpr double kReasonSeconds = 2;

// Returns one reason for each constraint of the smallest conflict (conflict.h), with the bound that would make the
// request feasible if all other constraints stay. If no such bound exists because of other constraints, it gives the
// bound that resolves this conflict, and the message says so. Every bound was verified by planning with it. Empty if
// the request is feasible or the budget is spent.
std::vector<model::Reason> WhyInfeasible(const Problem& problem, const Budget& budget);

// Explains why a plan with all layers on type `t` is not feasible.
std::vector<model::Reason> WhyNotSingleType(const Problem& problem, int t);

// Returns one reason for each resource without a price.
std::vector<model::Reason> Unpriced(const model::PlanRequest& request);

}  // namespace medley::sched
