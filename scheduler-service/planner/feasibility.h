// Whether any plan can meet the constraints of a request, found out before a planner searches.
#pragma once

#include <optional>
#include <vector>

#include "common/model/reason.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planning/budget.h"

namespace medley::sched {

// Time for the search of any plan, in seconds: the check must not take what the planner needs.
inline constexpr double kFeasibilitySeconds = 0.1;

struct Feasibility {
  bool infeasible = false;             // proven; false proves nothing
  std::vector<model::Reason> reasons;  // those of WhyLayersDoNotFit, if they prove it
};

// Proves it by single layers (layer_bound.h) and, where the model has few possible stages, by a search for any plan,
// which ends with the first one. Milliseconds.
Feasibility CheckFeasible(const Problem& problem, const Budget& budget);

// Why single layers prove that no plan meets the constraints: layers that fit on no type, a throughput that some layer
// reaches nowhere, quotas, USD per hour or USD that are too little for any plan. Each reason has what is needed at
// least, or available at most, for all plans; more may be needed. Empty: they prove nothing.
std::vector<model::Reason> WhyLayersDoNotFit(const Problem& problem);

// Samples/s that no plan exceeds, by single layers and the limits; 0 if some layer runs on no type.
double MostThroughput(const Problem& problem);

}  // namespace medley::sched
