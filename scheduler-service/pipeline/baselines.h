// Pipelines by simple rules and by searches, with which learned and exact plans are compared.
//
// docs/papers/tapp.md says what the papers leave open and what was chosen. All but the searches are pure.
#pragma once

#include <vector>

#include "common/base/rng.h"
#include "scheduler-service/devices/plans.h"
#include "scheduler-service/devices/problem.h"
#include "scheduler-service/pipeline/timer.h"

namespace medley::sched {

// PipeDream (Harlap and others 2018, section 3.3): the dynamic program A(j, m) over layers and a number of equal
// devices, with replicated stages. Devices count as equal: the mean of their times and of the bandwidths between them.
// The stages then take the devices in the order of the cluster.
std::vector<PipelineStage> PipeDream(const DeviceProblem& problem);

// Pipe-torch (Zhan, Zhang 2019, as TAPP describes it): the device with the largest sum of bandwidths first, then always
// the one with the fastest link to the device before; a stage each, cut where the slowest stage is the fastest,
// computation counting as equally fast everywhere, transfers by the links between the devices.
std::vector<PipelineStage> PipeTorch(const DeviceProblem& problem);

// One legal pipeline: a random number of stages, cuts, and disjoint sets of devices, through repair.h.
std::vector<PipelineStage> RandomPipeline(const DeviceProblem& problem, base::Rng& rng);

// Improves `start`: moves cuts, moves, adds, removes and swaps devices, divides and joins stages, takes the best of all
// neighbours by the closed form that is also better in simulation; then restarts until `calls` or the limits end, from
// random pipelines that the same moves have first improved by the closed form alone.
void SearchLocally(const DeviceProblem& problem, std::vector<PipelineStage> start, int64_t calls, base::Rng& rng,
                   const Budget& limits, PipelineTimer& timer);

}  // namespace medley::sched
