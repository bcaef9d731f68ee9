// The planner `auto` of the goal step time.
#pragma once

#include <memory>

#include "scheduler-service/planning/planner.h"

namespace medley::sched {

// Runs the planners whose plans suit the schedule and the number of devices, and takes the fastest plan by the
// simulator. Its notes say which planners were asked, and why.
std::unique_ptr<Planner> MakeAutoOnDevices();

}  // namespace medley::sched
