#include "scheduler-service/step_time/make_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "common/base/status.h"
#include "scheduler-service/step_time/evaluator.h"
#include "scheduler-service/step_time/plans.h"

namespace medley::sched {
namespace {

using Alternative = model::StepTimePlan::Alternative;

std::string Names(const StepTimeRegistry& planners) {
  std::string names;
  for (const auto& planner : planners.planners()) {
    names += (names.empty() ? "" : ", ") + std::string(planner->name());
  }
  return names;
}

Alternative Timed(std::string label, const absl::StatusOr<double>& seconds) {
  if (seconds.ok()) return {std::move(label), *seconds, ""};
  return {std::move(label), 0, std::string(base::Message(seconds.status()))};
}

// The whole model on one device: the fastest that it fits on.
Alternative OneDevice(const StepTimeProblem& problem, StepTimeEvaluator& evaluator) {
  Alternative best{"one device", 0, ""};
  std::set<std::string> pools;  // devices of one pool are equally fast
  for (int d = 0; d < problem.devices(); ++d) {
    if (!pools.insert(problem.device(d).pool).second) continue;
    const auto seconds = evaluator.Seconds(BuildDataParallel(problem, {{d}, {1}, {}, {}}));
    if (seconds.ok() && (best.seconds == 0 || *seconds < best.seconds)) {
      best = Timed("one device: " + problem.device(d).id, seconds);
    } else if (!seconds.ok() && best.seconds == 0) {
      best.failure = base::Message(seconds.status());
    }
  }
  return best;
}

// All devices, each with the same part of the batch, in one ring.
Alternative EqualShares(const StepTimeProblem& problem, StepTimeEvaluator& evaluator) {
  DataParallel how;
  for (int d = 0; d < problem.devices(); ++d) how.devices.push_back(d);
  how.shares.assign(how.devices.size(), 1.0 / problem.devices());
  how.algorithms = {model::AllreduceAlgorithm::kRing};
  return Timed("all devices, equal shares, one ring", evaluator.Seconds(BuildDataParallel(problem, how)));
}

}  // namespace

absl::StatusOr<model::PlanResult> MakeStepTimePlan(const model::PlanRequest& request, const StepTimeRegistry& planners,
                                                   const base::Clock& clock, std::stop_token stop,
                                                   base::SteadyTime deadline) {
  const base::SteadyTime begin = clock.Steady();
  MEDLEY_RETURN_IF_ERROR(model::Validate(request));
  const StepTimePlanner* planner = planners.Find(request.planner.name);
  if (planner == nullptr) {
    return base::InvalidArgument("planner.name: '{}' is unknown; with OBJECTIVE_STEP_TIME there are: {}",
                                 request.planner.name, Names(planners));
  }
  MEDLEY_ASSIGN_OR_RETURN(const StepTimeProblem problem, StepTimeProblem::Compile(request));
  const double budget = std::min(request.planner.time_budget_seconds, 3600.0);
  const SearchLimits limits(clock, std::min(deadline, begin + base::FromSeconds(budget)), stop);
  MEDLEY_ASSIGN_OR_RETURN(StepTimeSolution solution, planner->Solve(problem, request.planner.seed, limits));

  model::PlanResult result;
  result.planner = solution.planner.empty() ? request.planner.name : solution.planner;
  result.seed = request.planner.seed;
  result.resources = request.resources;
  result.notes = std::move(solution.notes);
  result.complete = solution.complete;
  if (!solution.best) {
    const std::string why = result.notes.empty() ? "no plan fits on these devices" : result.notes.back();
    result.reasons.push_back({"memory", "", 0, 0, why});
    result.planning_seconds = base::ToSeconds(clock.Steady() - begin);
    return result;
  }
  StepTimeEvaluator evaluator(problem, stop);
  MEDLEY_ASSIGN_OR_RETURN(const double seconds, evaluator.Seconds(*solution.best));
  model::StepTimePlan& plan = result.step_time.emplace();
  plan.seconds = seconds;
  plan.throughput = seconds > 0 ? problem.samples() / seconds : 0;
  plan.lower_bound_seconds = solution.lower_bound_seconds;
  plan.model_seconds = solution.model_seconds;
  plan.simulated = solution.simulated;
  plan.repaired = solution.repaired;
  plan.explanation = std::move(solution.explanation);
  plan.alternatives = std::move(solution.alternatives);
  plan.alternatives.push_back(OneDevice(problem, evaluator));
  plan.alternatives.push_back(EqualShares(problem, evaluator));
  solution.best->estimate.throughput = plan.throughput;
  solution.best->estimate.simulated_throughput = plan.throughput;
  solution.best->provenance.planner = result.planner;
  solution.best->provenance.seed = result.seed;
  solution.best->provenance.profile_id = request.profile_id;
  result.execution_plan = *std::move(solution.best);
  result.planning_seconds = base::ToSeconds(clock.Steady() - begin);
  return result;
}

}  // namespace medley::sched
