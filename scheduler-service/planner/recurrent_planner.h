// The planner rl-lstm: a recurrent policy over layers, trained by REINFORCE on the cost model (HeterPS, section 5.2 and
// Algorithm 1). The plan is the cheapest schedule that was drawn from the policy, with its optimal units; there is no
// other search. Other networks than the LSTM are for planners outside of the service.
#pragma once

#include "scheduler-service/planner/stage_planner.h"
#include "scheduler-service/policy_net/policy_shape.h"

namespace medley::sched {

// `name` and `description` must outlive the planner.
std::unique_ptr<StagePlanner> MakeRecurrentPlanner(std::string_view name, std::string_view description,
                                                   policy_net::CellKind cell);

}  // namespace medley::sched
