// Planners of operation-level plans: `graph`, and what it is compared with (HeteroG, section 6.1).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler-service/step_time/planner.h"

namespace medley::sched {

struct GraphOptions {
  int groups = 48;       // at most
  int64_t calls = 2000;  // simulations at most
};

// graph, graph-random, graph-mcmc, graph-post; ev-ps, ev-ar, cp-ps, cp-ar with the order of the model.
std::vector<std::unique_ptr<StepTimePlanner>> MakeGraphPlanners(const GraphOptions& options = {});

}  // namespace medley::sched
