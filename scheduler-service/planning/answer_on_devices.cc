#include "scheduler-service/planning/answer_on_devices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "common/base/status.h"
#include "scheduler-service/devices/figures.h"
#include "scheduler-service/devices/plans.h"
#include "scheduler-service/devices/why_none.h"
#include "scheduler-service/options/check_options.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/choose_devices.h"
#include "scheduler-service/planning/judge.h"

namespace medley::sched {
namespace {

using Alternative = model::StepTimePlan::Alternative;

// A plan to compare with, timed; impossible where it breaks a bound of the request.
Alternative Timed(std::string label, const model::PlanRequest& request, const DeviceProblem& problem,
                  const model::ExecutionPlan& plan, Judge& judge) {
  const auto seconds = judge.SecondsWithin(plan);
  if (!seconds.ok()) return {std::move(label), 0, std::string(base::Message(seconds.status()))};
  const absl::Status bounds = CheckBounds(request.constraints, problem, plan, *seconds);
  if (!bounds.ok()) return {std::move(label), 0, std::string(base::Message(bounds))};
  return {std::move(label), *seconds, "", FiguresOf(problem, plan, *seconds).usd_per_hour};
}

// The whole model on one device: the fastest that it fits on.
Alternative OneDevice(const model::PlanRequest& request, const DeviceProblem& problem, Judge& judge) {
  Alternative best{"one device", 0, ""};
  std::set<std::string> pools;  // devices of one pool are equally fast
  for (int d = 0; d < problem.devices(); ++d) {
    if (!pools.insert(problem.device(d).pool).second) continue;
    Alternative one = Timed("one device: " + problem.device(d).id, request, problem,
                            BuildDataParallel(problem, {{d}, {1}, {}, {}}), judge);
    if (one.failure.empty() && (best.seconds == 0 || one.seconds < best.seconds)) {
      best = std::move(one);
    } else if (!one.failure.empty() && best.seconds == 0) {
      best.failure = std::move(one.failure);
    }
  }
  return best;
}

// All devices, each with the same part of the batch, in one ring.
Alternative EqualShares(const model::PlanRequest& request, const DeviceProblem& problem, Judge& judge) {
  DataParallel how;
  for (int d = 0; d < problem.devices(); ++d) how.devices.push_back(d);
  how.shares.assign(how.devices.size(), 1.0 / problem.devices());
  how.algorithms = {model::AllreduceAlgorithm::kRing};
  return Timed("all devices, equal shares, one ring", request, problem, BuildDataParallel(problem, how), judge);
}

// Planners see bounds only where the choice of devices needs it (choose_devices.h).
model::PlanRequest WithoutBounds(model::PlanRequest request) {
  request.constraints = {};
  return request;
}

}  // namespace

absl::StatusOr<model::PlanResult> AnswerOnDevices(const model::PlanRequest& request, const Planner& planner,
                                                  const base::Clock& clock, std::stop_token stop,
                                                  base::SteadyTime deadline) {
  const base::SteadyTime begin = clock.Steady();
  MEDLEY_RETURN_IF_ERROR(model::Validate(request));
  if (!planner.takes().other_options) {
    MEDLEY_RETURN_IF_ERROR(CheckOptions(planner.name(), planner.options(), request.planner.options));
  }
  model::PlanResult result;
  result.planner = request.planner.name;
  result.seed = request.planner.seed;
  result.resources = request.resources;
  result.reasons = UnpricedDevices(request);
  if (!result.reasons.empty()) return result;
  MEDLEY_ASSIGN_OR_RETURN(const Question question, Question::Compile(WithoutBounds(request)));
  const DeviceProblem& problem = question.devices();
  const double budget = std::min(request.planner.time_budget_seconds, 3600.0);
  const Budget limits(clock, std::min(deadline, begin + base::FromSeconds(budget)), stop);
  MEDLEY_ASSIGN_OR_RETURN(Chosen chosen, ChooseDevices(question, request, planner, limits));

  Candidate& candidate = chosen.candidate;
  if (!candidate.planner.empty()) result.planner = candidate.planner;
  result.notes = std::move(candidate.notes);
  result.complete = candidate.complete;
  if (!candidate.plan) {
    result.reasons = std::move(chosen.reasons);
    const std::string why = result.notes.empty() ? "no plan fits on these devices" : result.notes.back();
    if (result.reasons.empty()) result.reasons.push_back({"memory", "", 0, 0, why});
    result.planning_seconds = base::ToSeconds(clock.Steady() - begin);
    return result;
  }
  const std::unique_ptr<Judge> judge = MakeSimulator(question, stop);
  MEDLEY_ASSIGN_OR_RETURN(const Figures figures, judge->Within(*candidate.plan));
  result.judge = judge->name();
  const double seconds = figures.seconds;
  model::StepTimePlan& plan = result.step_time.emplace();
  plan.seconds = seconds;
  plan.throughput = figures.throughput;
  plan.usd_per_hour = figures.usd_per_hour;
  plan.usd_per_step = seconds / 3600 * figures.usd_per_hour;
  plan.seconds_to_end = figures.seconds_to_end;
  plan.usd = figures.usd;
  plan.choices = chosen.choices;
  plan.lower_bound_seconds = candidate.lower_bound;
  plan.model_seconds = candidate.model_seconds;
  plan.simulated = candidate.judged;
  plan.repaired = candidate.repaired;
  plan.explanation = std::move(candidate.explanation);
  for (Candidate::Alternative& other : candidate.alternatives) {
    plan.alternatives.push_back({std::move(other.label), other.seconds, std::move(other.failure)});
  }
  plan.alternatives.push_back(OneDevice(request, problem, *judge));
  plan.alternatives.push_back(EqualShares(request, problem, *judge));
  candidate.plan->estimate.throughput = plan.throughput;
  candidate.plan->estimate.usd_per_hour = plan.usd_per_hour;
  candidate.plan->estimate.usd_total = plan.usd;
  candidate.plan->estimate.seconds_total = plan.seconds_to_end;
  candidate.plan->estimate.simulated_throughput = plan.throughput;
  candidate.plan->provenance.planner = result.planner;
  candidate.plan->provenance.seed = result.seed;
  candidate.plan->provenance.profile_id = request.profile_id;
  result.execution_plan = *std::move(candidate.plan);
  result.planning_seconds = base::ToSeconds(clock.Steady() - begin);
  return result;
}

}  // namespace medley::sched
