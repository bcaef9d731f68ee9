// HetPipe: virtual workers of unlike devices, a pipeline each.
#pragma once

#include <vector>

#include "scheduler-service/devices/plans.h"
#include "scheduler-service/planning/planner.h"

namespace medley::reproductions::heterog {

// HetPipe (Park and others 2020) with its equal distribution: virtual workers with the same numbers of devices of every
// pool, a pipeline each, whose stages are replicas of one another; cut where the slowest stage is the fastest, for the
// best of at most 120 orders of the pools. Devices that the model has no piece for are not used. One pipeline for each
// number of virtual workers that divides all pools. Its other distributions give virtual workers unlike pipelines,
// which no plan of stages can have. Where the limits end it, those that were found.
std::vector<std::vector<sched::PipelineStage>> HetPipe(const sched::DeviceProblem& problem,
                                                       const sched::Budget& limits);

}  // namespace medley::reproductions::heterog
