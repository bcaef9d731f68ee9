// Seconds of a step of a pipeline in steady state, without simulation. Pure, thread-safe.
//
// A stage i with replicas on some devices computes for c_i seconds a step (forward, backward and update, with balanced
// shares), reduces its gradients for r_i, and moves values for x_i seconds each way to stage i + 1. All that a device
// sends passes its network card, for n_i seconds: outputs to the next stage and gradients to the one before.
//   Asynchronous (PipeDream, TAPP): in each round a device updates, computes a step forward and an earlier one
//   backward, in this order. So a step that stage i begins comes back from stage j in j - i + 1 rounds: for all i <= j
//     (j - i + 1) T >= c_i + ... + c_j + 2 (x_i + ... + x_(j-1)) + r_i,
//   for i = j too: the update waits for the reduction. And T >= n_i. T is the least that satisfies all of them. (With
//   one batch more in flight, reductions and messages would hide behind computation, at one more version of staleness.)
//
//   Synchronous, with M micro-batches: the pipeline fills once, then the slowest cycle B of the kind above repeats, and
//   the longest reduction follows: T = (c_1 + ... + c_S + 2 (x_1 + ... ) + (M - 1) B) / M + max r_i.
#pragma once

#include <vector>

#include "scheduler-service/devices/plans.h"
#include "scheduler-service/devices/problem.h"

namespace medley::sched {

// Seconds of one way of a message of the cut's bytes between two stages of equal shares. Its parts go over different
// links at the same time, so the slowest counts, or the card of one replica that sends or receives its share. Every
// replica of one stage may have samples for every one of the other.
double TransferSeconds(const DeviceProblem& problem, const std::vector<int>& from, const std::vector<int>& to, int cut);

// Seconds of the allreduce of the stage's gradients, as BuildPipeline makes it; 0 on one device.
double StageReductionSeconds(const DeviceProblem& problem, const PipelineStage& stage);
// c_i, in whole samples, and n_i.
struct StageSeconds {
  double computes = 0;
  double sends = 0;
};
StageSeconds SecondsOfStage(const DeviceProblem& problem, const PipelineStage& stage);

double SecondsOfPipeline(const DeviceProblem& problem, const std::vector<PipelineStage>& stages);

}  // namespace medley::sched
