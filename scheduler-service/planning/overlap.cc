#include "scheduler-service/planning/overlap.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "scheduler-service/simulate/reduction_order.h"

namespace medley::sched {

std::vector<int64_t> BucketSizes(const DeviceProblem& problem) {
  std::vector<int64_t> sizes = {0};
  for (const int parts : {4, 16, 64}) {
    const auto bytes = static_cast<int64_t>(problem.WeightBytes(0, problem.layers()) / parts);
    if (bytes > 0) sizes.push_back(bytes);
  }
  return sizes;
}

absl::StatusOr<std::optional<OverlappedPlan>> Overlapping::NextStep(const model::ExecutionPlan& plan, double below) {
  std::optional<OverlappedPlan> best;
  const bool differs = problem_.request().planner.sync.mode != model::SyncMode::kFull;
  if (problem_.asynchronous() || differs || problem_.profile().model.clips_gradients) return best;
  model::ExecutionPlan next = plan;
  next.schedule.overlap_next_step = true;
  std::erase_if(next.order, [](const model::OrderEntry& entry) { return entry.phase == model::Phase::kReduce; });
  std::vector<int64_t> sizes = BucketSizes(problem_);
  sizes.push_back(plan.schedule.bucket_bytes);
  std::ranges::sort(sizes);
  sizes.erase(std::ranges::unique(sizes).begin(), sizes.end());
  for (const int64_t bytes : sizes) {
    if (limits_.Spent()) break;
    next.schedule.bucket_bytes = bytes;
    auto one = InOrderOfFirstUse(next, best ? best->figures.seconds : below);
    if (absl::IsCancelled(one.status())) return one.status();
    if (one.ok() && *one) best = **std::move(one);
  }
  return best;
}

// The same plan reduced in the order of first use; nullopt where no order takes at most `below` seconds, because some
// device computes for longer.
absl::StatusOr<std::optional<OverlappedPlan>> Overlapping::InOrderOfFirstUse(model::ExecutionPlan plan, double below) {
  MEDLEY_ASSIGN_OR_RETURN(const PlanSimulation simulated, simulator_.Timeline(plan));
  for (size_t d = 0; d < simulated.simulation.busy.size(); ++d) {
    const double computes = simulated.simulation.busy[d] / static_cast<double>(simulated.simulation.step_end.size());
    if (computes > below) return std::nullopt;
  }
  const std::vector<model::OrderEntry> reductions = ReductionsByFirstUse(simulated);
  plan.order.insert(plan.order.end(), reductions.begin(), reductions.end());
  MEDLEY_ASSIGN_OR_RETURN(const Figures figures, judge_.Within(plan));
  if (figures.seconds > below) return std::nullopt;
  return OverlappedPlan{std::move(plan), figures};
}

}  // namespace medley::sched
