// The planner thesis-groups: groups of replicas formed in one way, which the service's planner `hierarchy` compares
// with others (thesis, sections 4.1 and 4.2).
#pragma once

#include <memory>

#include "scheduler-service/planning/planner.h"

namespace medley::reproductions::thesis {

std::unique_ptr<sched::Planner> MakeGroupsPlanner();

}  // namespace medley::reproductions::thesis
