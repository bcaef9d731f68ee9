// The planners of pipelines, by name.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler-service/step_time/planner.h"

namespace medley::sched {

// exact, local, random, pipedream, pipe-torch, hetpipe, bsp, bsp-subset, one-device.
std::vector<std::unique_ptr<StepTimePlanner>> MakePipelinePlanners();

// Simulations that the searching planners make at most, unless their time ends first.
inline constexpr int64_t kSearchCalls = 2000;

}  // namespace medley::sched
