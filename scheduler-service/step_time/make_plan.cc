#include "scheduler-service/step_time/make_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "common/base/status.h"
#include "scheduler-service/step_time/choose.h"
#include "scheduler-service/step_time/evaluator.h"
#include "scheduler-service/step_time/figures.h"
#include "scheduler-service/step_time/plans.h"
#include "scheduler-service/step_time/why_none.h"

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

// A plan to compare with, timed; impossible where it breaks a bound of the request.
Alternative Timed(std::string label, const model::PlanRequest& request, const StepTimeProblem& problem,
                  const model::ExecutionPlan& plan, StepTimeEvaluator& evaluator) {
  const auto seconds = evaluator.Seconds(plan);
  if (!seconds.ok()) return {std::move(label), 0, std::string(base::Message(seconds.status()))};
  const absl::Status bounds = CheckBounds(request.constraints, problem, plan, *seconds);
  if (!bounds.ok()) return {std::move(label), 0, std::string(base::Message(bounds))};
  return {std::move(label), *seconds, "", FiguresOf(problem, plan, *seconds).usd_per_hour};
}

// The whole model on one device: the fastest that it fits on.
Alternative OneDevice(const model::PlanRequest& request, const StepTimeProblem& problem, StepTimeEvaluator& evaluator) {
  Alternative best{"one device", 0, ""};
  std::set<std::string> pools;  // devices of one pool are equally fast
  for (int d = 0; d < problem.devices(); ++d) {
    if (!pools.insert(problem.device(d).pool).second) continue;
    Alternative one = Timed("one device: " + problem.device(d).id, request, problem,
                            BuildDataParallel(problem, {{d}, {1}, {}, {}}), evaluator);
    if (one.failure.empty() && (best.seconds == 0 || one.seconds < best.seconds)) {
      best = std::move(one);
    } else if (!one.failure.empty() && best.seconds == 0) {
      best.failure = std::move(one.failure);
    }
  }
  return best;
}

// All devices, each with the same part of the batch, in one ring.
Alternative EqualShares(const model::PlanRequest& request, const StepTimeProblem& problem,
                        StepTimeEvaluator& evaluator) {
  DataParallel how;
  for (int d = 0; d < problem.devices(); ++d) how.devices.push_back(d);
  how.shares.assign(how.devices.size(), 1.0 / problem.devices());
  how.algorithms = {model::AllreduceAlgorithm::kRing};
  return Timed("all devices, equal shares, one ring", request, problem, BuildDataParallel(problem, how), evaluator);
}

// Planners see bounds only where the choice of devices needs it (choose.h).
model::PlanRequest WithoutBounds(model::PlanRequest request) {
  request.constraints = {};
  return request;
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
  if (!planner->takes().other_options) {
    MEDLEY_RETURN_IF_ERROR(CheckOptions(planner->name(), planner->options(), request.planner.options));
  }
  model::PlanResult result;
  result.planner = request.planner.name;
  result.seed = request.planner.seed;
  result.resources = request.resources;
  result.reasons = UnpricedDevices(request);
  if (!result.reasons.empty()) return result;
  MEDLEY_ASSIGN_OR_RETURN(const StepTimeProblem problem, StepTimeProblem::Compile(WithoutBounds(request)));
  const double budget = std::min(request.planner.time_budget_seconds, 3600.0);
  const SearchLimits limits(clock, std::min(deadline, begin + base::FromSeconds(budget)), stop);
  MEDLEY_ASSIGN_OR_RETURN(Chosen chosen, ChooseDevices(problem, request, *planner, limits));

  StepTimeSolution& solution = chosen.solution;
  if (!solution.planner.empty()) result.planner = solution.planner;
  result.notes = std::move(solution.notes);
  result.complete = solution.complete;
  if (!solution.best) {
    result.reasons = std::move(chosen.reasons);
    const std::string why = result.notes.empty() ? "no plan fits on these devices" : result.notes.back();
    if (result.reasons.empty()) result.reasons.push_back({"memory", "", 0, 0, why});
    result.planning_seconds = base::ToSeconds(clock.Steady() - begin);
    return result;
  }
  StepTimeEvaluator evaluator(problem, stop);
  MEDLEY_ASSIGN_OR_RETURN(const double seconds, evaluator.Seconds(*solution.best));
  model::StepTimePlan& plan = result.step_time.emplace();
  const Figures figures = FiguresOf(problem, *solution.best, seconds);
  plan.seconds = seconds;
  plan.throughput = figures.throughput;
  plan.usd_per_hour = figures.usd_per_hour;
  plan.usd_per_step = seconds / 3600 * figures.usd_per_hour;
  plan.seconds_to_end = figures.seconds_to_end;
  plan.usd = figures.usd;
  plan.choices = chosen.choices;
  plan.lower_bound_seconds = solution.lower_bound_seconds;
  plan.model_seconds = solution.model_seconds;
  plan.simulated = solution.simulated;
  plan.repaired = solution.repaired;
  plan.explanation = std::move(solution.explanation);
  plan.alternatives = std::move(solution.alternatives);
  plan.alternatives.push_back(OneDevice(request, problem, evaluator));
  plan.alternatives.push_back(EqualShares(request, problem, evaluator));
  solution.best->estimate.throughput = plan.throughput;
  solution.best->estimate.usd_per_hour = plan.usd_per_hour;
  solution.best->estimate.usd_total = plan.usd;
  solution.best->estimate.seconds_total = plan.seconds_to_end;
  solution.best->estimate.simulated_throughput = plan.throughput;
  solution.best->provenance.planner = result.planner;
  solution.best->provenance.seed = result.seed;
  solution.best->provenance.profile_id = request.profile_id;
  result.execution_plan = *std::move(solution.best);
  result.planning_seconds = base::ToSeconds(clock.Steady() - begin);
  return result;
}

}  // namespace medley::sched
