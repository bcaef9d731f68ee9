// Planners of operation-level plans: `graph`, and what others are made with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "scheduler-service/graph/search.h"
#include "scheduler-service/planning/planner.h"

namespace medley::sched {

struct GraphOptions {
  int groups = 48;       // at most
  int64_t calls = 2000;  // simulations at most
};

// Errors end the planning.
using GraphSearch = std::function<absl::Status(const GraphQuestion&)>;

// A planner whose plan is the best strategy that `search` had timed. `name` and `description` must outlive it.
// `compares`: it also tells the seconds of the baselines, and of the plan without each kind of its decisions.
std::unique_ptr<Planner> MakeGraphPlanner(std::string_view name, std::string_view description,
                                          const GraphOptions& options, GraphSearch search, bool compares);

// The planner `graph`.
std::unique_ptr<Planner> MakeGraph(const GraphOptions& options = {});

}  // namespace medley::sched
