// Plans whose reductions go on during the next step's forward pass (Schedule::overlap_next_step). The losses are the
// same; a step is shorter where reductions take longer than the backward pass that hides them.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "common/model/execution_plan.h"
#include "scheduler-service/step_time/evaluator.h"
#include "scheduler-service/step_time/planner.h"
#include "scheduler-service/step_time/problem.h"

namespace medley::sched {

// Sizes of buckets that are compared: all gradients at once, and the parameters in about 4, 16 and 64 parts.
std::vector<int64_t> BucketSizes(const StepTimeProblem& problem);

// A plan must take at most this part of the seconds of one that updates at the end: a step that is open makes a switch
// and an evaluation wait, and is lost with a member.
inline constexpr double kWorthOverlap = 0.99;

struct OverlappedPlan {
  model::ExecutionPlan plan;
  double seconds = 0;  // of a step
};

// `plan` with reductions during the next step, in its own size of buckets or one of BucketSizes, whichever is fastest,
// and reduced in the order of first use (simulate/reduction_order.h). Two simulations for each size; none is begun when
// the limits are spent. nullopt: no such plan can run, or none that was tried takes at most `below` seconds. Errors:
// Cancelled.
absl::StatusOr<std::optional<OverlappedPlan>> OverlapNextStep(const StepTimeProblem& problem,
                                                              const model::ExecutionPlan& plan, double below,
                                                              const SearchLimits& limits, StepTimeEvaluator& evaluator);

}  // namespace medley::sched
