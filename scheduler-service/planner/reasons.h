// Why a request has no feasible plan, in words that a person can act on.
#pragma once

#include <vector>

#include "common/model/planning.h"
#include "scheduler-service/planner/planner.h"

namespace medley::sched {

// Tries the request with one constraint lifted at a time: every constraint whose lifting alone is enough gives a reason
// with what would be needed. If none is enough alone, the violations of the cheapest plan with all lifted. Empty: the
// request is feasible after all, or the budget ended. Every reason's plan was really computed.
std::vector<model::Reason> WhyInfeasible(const Problem& problem, const Budget& budget);

// Why every layer on type `t` is not feasible.
std::vector<model::Reason> WhyNotSingleType(const Problem& problem, int t);

// The highest throughput within limits, memory, units and cost per hour; 0 when there is no plan at all.
double HighestThroughput(const Problem& problem, const Budget& budget);

// One for each resource without a price.
std::vector<model::Reason> Unpriced(const model::PlanRequest& request);

}  // namespace medley::sched
