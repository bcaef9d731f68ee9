#include "scheduler-service/step_time/overlap.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "scheduler-service/simulate/reduction_order.h"

namespace medley::sched {
namespace {

// The same plan reduced in the order of first use; nullopt where no order takes at most `below` seconds, because some
// device computes for longer.
absl::StatusOr<std::optional<OverlappedPlan>> InOrderOfFirstUse(model::ExecutionPlan plan, double below,
                                                                StepTimeEvaluator& evaluator) {
  MEDLEY_ASSIGN_OR_RETURN(const PlanSimulation simulated, evaluator.Timeline(plan));
  for (size_t d = 0; d < simulated.simulation.busy.size(); ++d) {
    const double computes = simulated.simulation.busy[d] / static_cast<double>(simulated.simulation.step_end.size());
    if (computes > below) return std::nullopt;
  }
  const std::vector<model::OrderEntry> reductions = ReductionsByFirstUse(simulated);
  plan.order.insert(plan.order.end(), reductions.begin(), reductions.end());
  MEDLEY_ASSIGN_OR_RETURN(const double seconds, evaluator.Seconds(plan));
  if (seconds > below) return std::nullopt;
  return OverlappedPlan{std::move(plan), seconds};
}

}  // namespace

std::vector<int64_t> BucketSizes(const StepTimeProblem& problem) {
  std::vector<int64_t> sizes = {0};
  for (const int parts : {4, 16, 64}) {
    const auto bytes = static_cast<int64_t>(problem.WeightBytes(0, problem.layers()) / parts);
    if (bytes > 0) sizes.push_back(bytes);
  }
  return sizes;
}

absl::StatusOr<std::optional<OverlappedPlan>> OverlapNextStep(const StepTimeProblem& problem,
                                                              const model::ExecutionPlan& plan, double below,
                                                              const SearchLimits& limits,
                                                              StepTimeEvaluator& evaluator) {
  std::optional<OverlappedPlan> best;
  const bool differs = problem.request().planner.sync.mode != model::SyncMode::kFull;
  if (problem.asynchronous() || differs || problem.profile().model.clips_gradients) return best;
  model::ExecutionPlan next = plan;
  next.schedule.overlap_next_step = true;
  std::erase_if(next.order, [](const model::OrderEntry& entry) { return entry.phase == model::Phase::kReduce; });
  std::vector<int64_t> sizes = BucketSizes(problem);
  sizes.push_back(plan.schedule.bucket_bytes);
  std::ranges::sort(sizes);
  sizes.erase(std::ranges::unique(sizes).begin(), sizes.end());
  for (const int64_t bytes : sizes) {
    if (limits.Spent()) break;
    next.schedule.bucket_bytes = bytes;
    auto one = InOrderOfFirstUse(next, best ? best->seconds : below, evaluator);
    if (absl::IsCancelled(one.status())) return one.status();
    if (one.ok() && *one) best = **std::move(one);
  }
  return best;
}

}  // namespace medley::sched
