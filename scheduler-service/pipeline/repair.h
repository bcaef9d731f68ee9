// Makes a legal pipeline of any assignment of layers to groups and of groups to devices. Pure.
#pragma once

#include <vector>

#include "scheduler-service/devices/plans.h"
#include "scheduler-service/devices/problem.h"

namespace medley::sched {

struct RepairedPipeline {
  std::vector<PipelineStage> stages;
  bool changed = false;  // the assignment was illegal
};

// A stage consists of neighbouring layers between two cuts of the problem, and a device serves one stage. In order:
//   - the layers between two cuts take the group of most of them, weighted by their work on the first device;
//   - of a group in several places, the place with the most work keeps it, the others join the stage before, or after;
//   - a device that several groups have stays with the first of these stages;
//   - a stage without a device gets the lowest one that no stage has, or joins its neighbour.
// `group_of_layer`: any numbers, by layer. `devices_of_group`: by those numbers, devices of the problem; may be empty.
RepairedPipeline RepairPipeline(const DeviceProblem& problem, const std::vector<int>& group_of_layer,
                                const std::vector<std::vector<int>>& devices_of_group);

}  // namespace medley::sched
