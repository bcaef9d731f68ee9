// Why a request has no feasible plan, in words that a person can act on.
#pragma once

#include <vector>

#include "common/model/planning.h"
#include "scheduler-service/planner/planner.h"

namespace medley::sched {

// One reason for each constraint of the smallest conflict (conflict.h), with what would make the request feasible if
// the others stay. Where other constraints would still stand in the way, what would resolve this conflict, and the
// message says so. Empty: the request is feasible after all, or the budget ended. Every bound named was planned with.
std::vector<model::Reason> WhyInfeasible(const Problem& problem, const Budget& budget);

// Why every layer on type `t` is not feasible.
std::vector<model::Reason> WhyNotSingleType(const Problem& problem, int t);

// One for each resource without a price.
std::vector<model::Reason> Unpriced(const model::PlanRequest& request);

}  // namespace medley::sched
