#include "scheduler-service/planner/auto_step_time.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "scheduler-service/hierarchy/hierarchy_planner.h"
#include "scheduler-service/pipeline/exact_pipeline.h"
#include "scheduler-service/pipeline/pipeline_planners.h"
#include "scheduler-service/step_time/overlap.h"

namespace medley::sched {
namespace {

class AutoStepTime final : public StepTimePlanner {
 public:
  AutoStepTime() : hierarchy_(MakeHierarchyPlanner()) {
    for (auto& planner : MakePipelinePlanners()) pipelines_.Add(std::move(planner));
  }
  std::string_view name() const override { return "auto"; }
  std::string_view description() const override {
    return "the fastest of hierarchy (synchronous schedules), local and, with few devices, exact";
  }

  absl::StatusOr<StepTimeSolution> Solve(const StepTimeProblem& problem, uint64_t seed,
                                         const SearchLimits& limits) const override {
    std::vector<std::pair<const StepTimePlanner*, std::string>> asked;
    // Replicas of the whole model have no pipeline, so nothing is asynchronous in them.
    if (!problem.asynchronous()) asked.emplace_back(hierarchy_.get(), "replicas of the whole model in groups");
    const bool few = problem.devices() <= kMostExactDevices;
    const bool worth = problem.asynchronous() || problem.devices() <= kMostPipelined;
    if (problem.devices() > 1 && !problem.cuts().empty() && worth) {
      if (few) asked.emplace_back(pipelines_.Find("exact"), "pipelines, of which few devices allow an exact search");
      asked.emplace_back(pipelines_.Find("local"), "pipelines, by local search with the simulator");
    }
    if (asked.empty()) asked.emplace_back(pipelines_.Find("one-device"), "the model is one stage");
    StepTimeSolution best;
    std::string compared;
    for (const auto& [planner, what] : asked) {
      MEDLEY_ASSIGN_OR_RETURN(StepTimeSolution one, planner->Solve(problem, seed, limits));
      compared += fmt::format("{}{} ({}): {}", compared.empty() ? "" : "; ", planner->name(), what,
                              one.best            ? fmt::format("{:.6g} s", one.seconds)
                              : one.notes.empty() ? "no plan"
                                                  : one.notes.back());
      one.planner = planner->name();
      const int64_t simulated = best.simulated + one.simulated;
      const bool complete = best.complete && one.complete;
      const double bound = std::max(best.lower_bound_seconds, one.lower_bound_seconds);  // of exact, for all pipelines
      if (one.best && (!best.best || one.seconds < best.seconds)) best = std::move(one);
      best.simulated = simulated;
      best.complete = complete;
      if (best.model_seconds > 0) best.lower_bound_seconds = bound;
    }
    best.notes.push_back("planner auto compared " + compared);
    if (best.best) MEDLEY_RETURN_IF_ERROR(Overlap(problem, limits, best));
    return best;
  }

 private:
  static absl::Status Overlap(const StepTimeProblem& problem, const SearchLimits& limits, StepTimeSolution& best) {
    StepTimeEvaluator evaluator(problem, limits);
    MEDLEY_ASSIGN_OR_RETURN(auto overlapped,
                            OverlapNextStep(problem, *best.best, best.seconds * kWorthOverlap, limits, evaluator));
    best.simulated += evaluator.calls();
    if (!overlapped) return absl::OkStatus();
    best.alternatives.push_back({"the plan that ends its reductions before the next step", best.seconds, ""});
    best.explanation += "reductions go on during the next step's forward pass\n";
    best.best = std::move(overlapped->plan);
    best.seconds = overlapped->seconds;
    limits.Report(*best.best, best.seconds);
    return absl::OkStatus();
  }

  static constexpr int kMostPipelined = 64;  // devices: beyond, stages would be shorter than their messages

  const std::unique_ptr<StepTimePlanner> hierarchy_;
  StepTimeRegistry pipelines_;
};

}  // namespace

std::unique_ptr<StepTimePlanner> MakeAutoStepTime() { return std::make_unique<AutoStepTime>(); }

}  // namespace medley::sched
