// The best pipeline on at most 8 devices by the closed form (closed_form.h), with a proof.
//
// Searched: all cuts of the problem, all orders of stages over devices, every stage on any set of devices, devices that
// are not used. A stage's shares are balanced, its replicas in ascending order. Bisects the seconds T: for one T, a
// dynamic program from the last stage to the first keeps, for each (first layer, devices used, devices of the first
// stage), the least slack: the largest of c_i + ... + c_j + 2 (x_i + ...) - (j - i + 1) T over j, which must not exceed
// -r_i. It is c_i - T plus, if positive, 2 x_i plus the slack of the next stage, so less is never worse.
//
// For synchronous pipelines it finds, for each of a number of bounds of c_i and x_i, that with the least time to fill.
// Then it proves a bound by branch and bound over the slowest cycle B in [b1, b2] and the longest reduction R in [r1,
// r2]: of all pipelines in such a range, the time to fill is at least that of the best one without a stage above b2 or
// a reduction above r2, which the dynamic program finds, so a step takes at least (fill + (M - 1) b1) / M + r1. Longer
// cycles than that of one stage are left out of it, except that no pipeline has a slowest cycle below the least that an
// asynchronous one without reductions has. So a gap may remain, which the bound tells.
//
// The closed form counts messages and reductions that the simulator may hide, so its bound may exceed what a pipeline
// takes there. `simulated_bound` counts only what each simulated step certainly contains. In any schedule a stage
// computes its samples once a step, for at least C, which is with the best shares, and reduces once a step. In a
// synchronous one the first stage waits, in each step, until a micro-batch has passed the stages before any stage b, b
// has computed all micro-batches, and a gradient has come back: T >= w C_b + sum over i < b of (w q C_i / M + l_i),
// where w is the part of the computation that is not the update, q what rounding leaves of a micro-batch, and l_i the
// least latency of a message there and one back. The least of it over all pipelines is found by the same dynamic
// program, without bisection. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "scheduler-service/devices/plans.h"
#include "scheduler-service/planning/planner.h"

namespace medley::sched {

inline constexpr int kMostExactDevices = 8;
inline constexpr size_t kMostExactPieces = 64;  // between two cuts
inline constexpr double kExactGap = 1e-4;       // relative, at which bisecting ends

struct ExactPipeline {
  std::vector<PipelineStage> stages;
  double seconds = 0;  // SecondsOfPipeline
  // No pipeline of the searched kind takes less by the closed form. Of asynchronous ones at most kExactGap below
  // `seconds`, unless the limits ended the search.
  double lower_bound = 0;
  // No pipeline of the searched kind takes less by the simulator, however its reductions overlap; 0: there was no time.
  double simulated_bound = 0;
  std::vector<std::vector<PipelineStage>> found;  // other pipelines that the search met, the best last
  size_t pieces_joined = 0;  // cuts that were not tried, because there are more than kMostExactPieces
};

// Errors: InvalidArgument for more than kMostExactDevices devices. Where the model has more than kMostExactPieces
// pieces, those with the least work are joined to their neighbours, and the bound holds for the cuts that are left.
//
// `steps_kept`: stages are left out that do not fit in the memory of a device with parameters, their gradient and
// optimizer state, and the activations of so many steps. Every pipeline keeps those of one, so the bound of 1 holds for
// all plans that fit; how many more depends on the stage's place.
absl::StatusOr<ExactPipeline> FindExactPipeline(const DeviceProblem& problem, const Budget& limits,
                                                double steps_kept = 1);

}  // namespace medley::sched
