// The best asynchronous pipeline on at most 8 devices by the closed form (closed_form.h), with a proof; and good
// synchronous ones.
//
// Searched: all cuts of the problem, all orders of stages over devices, every stage on any set of devices, devices that
// are not used. A stage's shares are balanced, its replicas in ascending order. Bisects the seconds T: for one T, a
// dynamic program from the last stage to the first keeps, for each (first layer, devices used, devices of the first
// stage), the least slack: the largest of c_i + ... + c_j + 2 (x_i + ...) - (j - i + 1) T over j, which must not exceed
// -r_i. It is c_i - T plus, if positive, 2 x_i plus the slack of the next stage, so less is never worse.
//
// For synchronous pipelines it finds, for each of a number of bounds of c_i and x_i, that with the least time to fill.
// Nothing is proven of them. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "scheduler-service/planning/planner.h"
#include "scheduler-service/step_time/plans.h"

namespace medley::sched {

inline constexpr int kMostExactDevices = 8;
inline constexpr size_t kMostExactPieces = 64;  // between two cuts
inline constexpr double kExactGap = 1e-4;       // relative, at which bisecting ends

struct ExactPipeline {
  std::vector<PipelineStage> stages;
  double seconds = 0;  // SecondsOfPipeline
  // No asynchronous pipeline of the searched kind takes less: at most kExactGap below `seconds`, unless the limits
  // ended the search. 0 for synchronous ones.
  double lower_bound = 0;
  std::vector<std::vector<PipelineStage>> found;  // other pipelines that the search met, the best last
  size_t pieces_joined = 0;  // cuts that were not tried, because there are more than kMostExactPieces
};

// Errors: InvalidArgument for more than kMostExactDevices devices. Where the model has more than kMostExactPieces
// pieces, those with the least work are joined to their neighbours, and the bound holds for the cuts that are left.
//
// `steps_kept`: stages are left out that do not fit in the memory of a device with parameters, their gradient and
// optimizer state, and the activations of so many steps. Every pipeline keeps those of one, so the bound of 1 holds for
// all plans that fit; how many more depends on the stage's place.
absl::StatusOr<ExactPipeline> FindExactPipeline(const StepTimeProblem& problem, const Budget& limits,
                                                double steps_kept = 1);

}  // namespace medley::sched
