// The planners that HeterPS (Liu and others 2023, section 6) is compared with and that the scheduling service does not
// have: each is described in its own source.
#pragma once

#include <memory>
#include <vector>

#include "scheduler-service/planner/stage_planner.h"

namespace medley::reproductions::heterps {

std::unique_ptr<sched::StagePlanner> MakeBayesian();
std::unique_ptr<sched::StagePlanner> MakeGenetic();
std::unique_ptr<sched::StagePlanner> MakeRlRnn();

// All of them.
std::vector<std::unique_ptr<sched::Planner>> MakeHeterpsPlanners();

}  // namespace medley::reproductions::heterps
