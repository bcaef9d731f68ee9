#include "scheduler-service/planner/plan.h"

#include <algorithm>

#include "common/base/status.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/options/check_options.h"
#include "scheduler-service/planner/choice.h"
#include "scheduler-service/planner/execution_plan.h"
#include "scheduler-service/planner/feasibility.h"
#include "scheduler-service/planner/objectives.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planner/program_fit.h"
#include "scheduler-service/planner/reasons.h"
#include "scheduler-service/planner/refining_search.h"
#include "scheduler-service/planner/rows_place.h"
#include "scheduler-service/planner/schedule_names.h"
#include "scheduler-service/planner/stage_graph.h"
#include "scheduler-service/planning/answer_on_devices.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/judge.h"
#include "scheduler-service/planning/stages.h"
#include "scheduler-service/provision/exact.h"

namespace medley::sched {
namespace {

constexpr int64_t kMostStagesForConflict = 2'000;  // possible stages, up to which the smallest conflict is found

// The best plan of one stage: replicas that differ hold the whole model.
Solution OneStage(const Problem& problem, model::PlanResult& result) {
  const model::Objective objective = problem.request().objective;
  Solution solution;
  solution.planner = "one-stage";
  solution.complete = true;
  for (int t = 0; t < problem.types(); ++t) {
    const std::optional<Provisioned> plan = SingleTypeFor(problem, t, objective);
    const bool better =
        plan && solution.best && ValueOf(problem, *plan, objective) < ValueOf(problem, *solution.best, objective);
    if (plan && (!solution.best || better)) solution.best = plan;
    if (plan) continue;
    const std::vector<model::Reason> why = WhyNotSingleType(problem, t);
    result.reasons.insert(result.reasons.end(), why.begin(), why.end());
  }
  if (!solution.best) return solution;
  result.reasons.clear();
  if (objective == model::Objective::kCost) solution.lower_bound = solution.best->score.cost;
  solution.notes.push_back("replicas that differ hold the whole model: only plans of one stage were compared");
  return solution;
}

// The best plan on one type: the cheapest in any number of stages unless `one_stage`, that of another objective in one.
std::optional<Provisioned> BestOnType(const Problem& problem, int t, bool one_stage, const Budget& budget) {
  const model::Objective objective = problem.request().objective;
  if (objective != model::Objective::kCost) return SingleTypeFor(problem, t, objective);
  return one_stage ? SingleType(problem, t) : CheapestOnType(problem, t, budget);
}

// `none`: it is proven that no plan exists, so none on a single type does.
void AddAlternatives(const Problem& problem, bool one_stage, bool none, const Budget& budget,
                     model::PlanResult& result) {
  for (int t = 0; t < problem.types(); ++t) {
    model::Alternative alternative;
    alternative.label = problem.type(t).name + " only";
    if (const auto plan = none ? std::nullopt : BestOnType(problem, t, one_stage, budget)) {
      alternative.plan = Evaluate(problem, plan->stages).plan;
    } else {
      alternative.reasons = WhyNotSingleType(problem, t);
    }
    result.alternatives.push_back(std::move(alternative));
  }
}

// A request for groups that no stage of the plan has is answered with the reason.
void NoteMissingGroups(const model::Synchronisation& how, const model::ExecutionPlan& plan,
                       std::vector<std::string>& notes) {
  if (how.hierarchy == model::Grouping::kNone) return;
  for (const model::Stage& stage : plan.stages) {
    for (const model::OperationSync& sync : stage.syncs) {
      if (!sync.sync.hierarchy.empty()) return;
    }
  }
  notes.push_back(how.hierarchy == model::Grouping::kPool
                      ? "replicas form no groups by pool: each stage with replicas is in one pool"
                      : "replicas form no groups: no stage has 4 replicas");
}

// The proven bound of an objective other than the least USD.
void AddBound(const Problem& problem, const Provisioned& plan, double bound, model::PlanResult& result) {
  const model::Objective objective = problem.request().objective;
  const double value = ValueOf(problem, plan, objective);
  (objective == model::Objective::kTime ? result.lower_bound_seconds : result.lower_bound_usd_per_hour) = bound;
  result.gap = value > 0 ? (value - bound) / value : 0;
  result.execution_plan->provenance.gap = *result.gap;
}

void AddPlan(const Problem& problem, const Solution& solution, const PriceOrigin& origin, model::PlanResult& result) {
  model::ExecutionPlan plan = BuildExecutionPlan(problem, solution.best->stages);
  if (const absl::Status program = CheckProgram(plan, problem.request()); !program.ok()) {
    result.reasons.push_back(
        {"program", "", 0, 0, fmt::format("the runtime cannot execute the cheapest plan: {}", base::Message(program))});
    return;
  }
  result.plan = Evaluate(problem, solution.best->stages).plan;
  const bool cheapest = problem.request().objective == model::Objective::kCost;
  if (cheapest && solution.lower_bound) {
    const double cost = result.plan->cost_usd;
    result.lower_bound_usd = std::min(*solution.lower_bound, cost);
    result.gap = cost > 0 ? (cost - *result.lower_bound_usd) / cost : 0;
  }
  if (result.simulated) plan.estimate.simulated_throughput = result.simulated->throughput;
  plan.provenance = {result.planner,
                     result.seed,
                     origin.catalog_revision,
                     origin.price_time,
                     problem.request().profile_id,
                     result.lower_bound_usd.value_or(0),
                     result.gap.value_or(1)};
  if (FitsOnlyWithoutUndo(plan, problem.request())) {
    plan.schedule.without_undo = true;
    result.notes.push_back(
        "the versions of parameters that undo an update do not fit in memory, so the plan keeps none: after a failure "
        "the job may return to its last checkpoint");
  }
  NoteMissingGroups(problem.request().planner.sync, plan, result.notes);
  result.execution_plan = std::move(plan);
  if (!cheapest && solution.lower_bound) AddBound(problem, *solution.best, *solution.lower_bound, result);
}

// Why no plan exists, in at most the time of the budget. `known`: what single layers have proven.
std::vector<model::Reason> WhyNone(const Problem& problem, std::vector<model::Reason> known, const Budget& budget) {
  // The smallest conflict is found in milliseconds for small models.
  const bool small = StageGraph::Count(problem, {}, kMostStagesForConflict) <= kMostStagesForConflict;
  if (!small && known.empty()) known = WhyLayersDoNotFit(problem);
  if (!small && !known.empty()) return known;
  std::vector<model::Reason> reasons;
  if (!HasManyStages(problem)) reasons = WhyInfeasible(problem, budget);
  if (reasons.empty()) reasons = known.empty() ? WhyLayersDoNotFit(problem) : std::move(known);
  if (reasons.empty()) {
    reasons.push_back({"limit", "", 0, 0, "no plan meets all constraints together: relax more than one of them"});
  }
  return reasons;
}

// Adds the reasons to a result without a plan. DeadlineExceeded if the time ran out.
absl::Status AddReasons(const Problem& problem, const Planner& planner, const Solution& solution,
                        const base::Clock& clock, std::stop_token stop, model::PlanResult& result) {
  if (!solution.complete) {
    return base::DeadlineExceeded(
        "planner {} found no plan within its time budget, and it is not proven that there is none: raise "
        "planner.timeBudgetSeconds",
        planner.name());
  }
  const Budget budget(clock, clock.Steady() + base::FromSeconds(kReasonSeconds), std::move(stop));
  if (!solution.infeasible && !planner.proves_optimality()) {
    const auto exact = MakeExact()->SolveStages(problem, 0, budget);
    if (exact.ok() && !(exact->complete && !exact->best)) {
      const std::string_view exists =
          exact->best ? "one exists: use planner exact" : "it is not proven that none exists";
      result.reasons.push_back(
          {"planner", "", 0, 0, fmt::format("planner {} found no feasible plan, but {}", planner.name(), exists)});
      return absl::OkStatus();
    }
  }
  result.reasons = WhyNone(problem, solution.why, budget);
  return absl::OkStatus();
}

// The answer of a planner as stages of the problem.
absl::StatusOr<Solution> SolutionOf(const Problem& problem, Candidate candidate) {
  Solution solution;
  if (candidate.plan) {
    MEDLEY_ASSIGN_OR_RETURN(std::vector<StageChoice> stages, StagesOf(problem, *candidate.plan));
    const Score score = ScoreIn(problem, stages, candidate.figures);
    solution.best = Provisioned{std::move(stages), score};
  }
  if (candidate.lower_bound > 0) solution.lower_bound = candidate.lower_bound;
  solution.complete = candidate.complete;
  solution.planner = std::move(candidate.planner);
  solution.policy = std::move(candidate.policy);
  solution.notes = std::move(candidate.notes);
  return solution;
}

absl::Status CheckPlanner(const Planner& planner, const model::PlanRequest& request) {
  if (!planner.takes().other_options) {
    MEDLEY_RETURN_IF_ERROR(CheckOptions(planner.name(), planner.options(), request.planner.options));
  }
  if (request.objective == model::Objective::kCost || planner.takes().objectives) return absl::OkStatus();
  return base::InvalidArgument(
      "planner.name: planner {} minimises USD; the least USD per hour and the fewest seconds of plans of stages are "
      "found by planners auto and exact",
      planner.name());
}

// Whether it is known before the planner searches that no plan exists. Planners that prove see it themselves where the
// model has few possible stages.
Feasibility CheckBefore(const Problem& problem, const Planner& planner, const Budget& budget) {
  if (planner.proves_optimality() && !HasManyStages(problem)) return {};
  return CheckFeasible(problem, budget);
}

// Asks the planner, and then lets the simulator choose among its best candidates where it can.
absl::StatusOr<Solution> BestStages(const Question& question, const Planner& planner, const base::Clock& clock,
                                    base::SteadyTime deadline, std::stop_token stop, model::PlanResult& result) {
  const Problem& problem = question.units();
  const model::PlanRequest& request = question.request();
  const bool simulates = request.planner.evaluator == model::EvaluatorKind::kSimulator && CanSimulate(request);
  CandidateList found(problem);
  const Budget::OnBetter keep = [&](const model::ExecutionPlan& plan, const Figures& figures) {
    auto stages = StagesOf(problem, plan);
    if (!stages.ok()) return;
    const Score score = ScoreIn(problem, *stages, figures);
    found.Add({*std::move(stages), score});
  };
  const Budget budget(clock, deadline, stop, simulates ? keep : Budget::OnBetter());
  const bool differ = request.planner.sync.mode != model::SyncMode::kFull;
  Solution solution;
  if (differ) {
    solution = OneStage(problem, result);
  } else if (Feasibility before = CheckBefore(problem, planner, budget); before.infeasible) {
    solution.infeasible = true;
    solution.why = std::move(before.reasons);
  } else {
    const std::unique_ptr<Judge> judge = MakeClosedForm(question);
    MEDLEY_ASSIGN_OR_RETURN(Candidate candidate, planner.Solve(question, *judge, request.planner.seed, budget));
    MEDLEY_ASSIGN_OR_RETURN(solution, SolutionOf(problem, std::move(candidate)));
  }
  if (!solution.best) return solution;
  result.judge = "closed form";
  if (!simulates) return solution;
  const SimulatedChoice choice =
      ChooseBySimulator(question, found, planner.proves_optimality() && !differ, stop, solution);
  result.simulated = choice.figures;
  if (choice.chose) result.judge = "simulator";
  return solution;
}

// `explains`: whether to say why there is no plan.
absl::StatusOr<model::PlanResult> AnswerInUnits(const model::PlanRequest& request, const PriceOrigin& origin,
                                                const Planner& planner, const base::Clock& clock, std::stop_token stop,
                                                base::SteadyTime deadline, bool explains = true) {
  const base::SteadyTime begin = clock.Steady();
  MEDLEY_RETURN_IF_ERROR(model::Validate(request));
  MEDLEY_RETURN_IF_ERROR(CheckPlanner(planner, request));
  model::PlanResult result;
  result.planner = request.planner.name;
  result.seed = request.planner.seed;
  result.resources = request.resources;
  result.reasons = Unpriced(request);
  if (!result.reasons.empty()) return result;

  MEDLEY_ASSIGN_OR_RETURN(const Question question, Question::Compile(request));
  const Problem& problem = question.units();
  const double seconds = std::min(request.planner.time_budget_seconds, 3600.0);
  const base::SteadyTime end = std::min(deadline, begin + base::FromSeconds(seconds));
  MEDLEY_ASSIGN_OR_RETURN(Solution solution, BestStages(question, planner, clock, end, stop, result));
  const bool differ = request.planner.sync.mode != model::SyncMode::kFull;
  if (!solution.planner.empty()) result.planner = solution.planner;
  result.notes = solution.notes;
  if (solution.best) {
    AddPlan(problem, solution, origin, result);
    if (!result.plan) result.judge.clear();
  } else if (!differ && explains) {
    MEDLEY_RETURN_IF_ERROR(AddReasons(problem, planner, solution, clock, stop, result));
  }
  result.policy = std::move(solution.policy);
  const Budget budget(clock, end, stop);
  const bool proven = solution.infeasible || (planner.proves_optimality() && solution.complete);
  AddAlternatives(problem, differ, !solution.best && !differ && proven, budget, result);
  result.complete = solution.complete && planner.deterministic() && !budget.Spent();
  result.planning_seconds = base::ToSeconds(clock.Steady() - begin);
  return result;
}

// The answer for one place, and whether it is known that there is one, or none.
struct PlaceAnswer {
  model::PlanResult result;
  bool known = false;
};

// Plans with parameter servers and plans whose trainers keep the rows are compared where the request leaves it open.
absl::StatusOr<PlaceAnswer> AnswerOnHosts(const model::PlanRequest& request, const PriceOrigin& origin,
                                          const Planner& planner, const base::Clock& clock, std::stop_token stop,
                                          base::SteadyTime deadline, int parts) {
  const base::SteadyTime now = clock.Steady();
  const base::SteadyTime half = deadline == base::SteadyTime::max() ? deadline : now + (deadline - now) / 2;
  auto servers =
      AnswerInUnits(ForRowsPlace(request, model::RowsPlace::kServers, parts), origin, planner, clock, stop, half);
  if (!servers.ok() && !absl::IsDeadlineExceeded(servers.status())) return servers.status();
  auto trainers = AnswerInUnits(ForRowsPlace(request, model::RowsPlace::kTrainers, parts), origin, planner, clock,
                                std::move(stop), deadline);
  if (!trainers.ok() && !absl::IsDeadlineExceeded(trainers.status())) return trainers.status();
  if (!servers.ok() && (!trainers.ok() || !trainers->plan)) return servers.status();
  const bool servers_known = servers.ok(), trainers_known = trainers.ok();
  if (!trainers_known && !servers->plan) return trainers.status();
  return PlaceAnswer{BetterPlace(request, servers_known ? *std::move(servers) : model::PlanResult(), servers_known,
                                 trainers_known ? *std::move(trainers) : model::PlanResult(), trainers_known,
                                 model::RowsPlace::kTrainers),
                     servers_known && trainers_known};
}

// Where a GPU may have the rows, the same is asked for that place.
absl::StatusOr<model::PlanResult> AnswerForRows(const model::PlanRequest& request, const PriceOrigin& origin,
                                                const Planner& planner, const base::Clock& clock, std::stop_token stop,
                                                base::SteadyTime deadline) {
  if (!ChoosesRowsPlace(request)) return AnswerInUnits(request, origin, planner, clock, std::move(stop), deadline);
  const bool devices = MayUseDevices(request);
  const int parts = devices ? 3 : 2;
  const base::SteadyTime now = clock.Steady();
  const bool bounded = devices && deadline != base::SteadyTime::max();
  auto hosts =
      AnswerOnHosts(request, origin, planner, clock, stop, bounded ? now + (deadline - now) * 2 / 3 : deadline, parts);
  if (!devices || (!hosts.ok() && !absl::IsDeadlineExceeded(hosts.status()))) {
    return hosts.ok() ? absl::StatusOr<model::PlanResult>(std::move(hosts->result)) : hosts.status();
  }
  // Why rows are on hosts is what users can change.
  auto device = AnswerInUnits(ForRowsPlace(request, model::RowsPlace::kDevice, parts), origin, planner, clock,
                              std::move(stop), deadline, /*explains=*/false);
  if (!device.ok() && !absl::IsDeadlineExceeded(device.status())) return device;
  if (!hosts.ok() && (!device.ok() || !device->plan)) return hosts.status();
  const bool hosts_known = hosts.ok() && hosts->known, device_known = device.ok() && (device->plan || device->complete);
  model::PlanResult on_hosts = hosts.ok() ? std::move(hosts->result) : model::PlanResult();
  if (!on_hosts.plan && !(device.ok() && device->plan)) return on_hosts;
  return BetterPlace(request, std::move(on_hosts), hosts_known, device_known ? *std::move(device) : model::PlanResult(),
                     device_known, model::RowsPlace::kDevice);
}

}  // namespace

absl::Status CheckGoalIsCost(const model::PlanRequest& request) {
  if (request.objective == model::Objective::kCost && !request.on_devices()) return absl::OkStatus();
  return base::InvalidArgument(
      "objective: only plans have another objective than the least USD, as OBJECTIVE_STEP_TIME, or a cluster");
}

absl::StatusOr<model::PlanResult> MakePlan(const model::PlanRequest& request, const PriceOrigin& origin,
                                           const Registry& registry, const base::Clock& clock, std::stop_token stop,
                                           base::SteadyTime deadline) {
  const Supply supply = SupplyOf(request);
  MEDLEY_RETURN_IF_ERROR(registry.CheckName(request.planner.name, supply));
  const Planner& planner = *registry.Find(request.planner.name, supply);
  auto result = supply == Supply::kDevices ? AnswerOnDevices(request, planner, clock, std::move(stop), deadline)
                                           : AnswerForRows(request, origin, planner, clock, std::move(stop), deadline);
  if (!result.ok()) return result;
  result->catalog_revision = origin.catalog_revision;
  result->price_time = origin.price_time;
  if (result->execution_plan) {
    result->execution_plan->provenance.catalog_revision = origin.catalog_revision;
    result->execution_plan->provenance.price_time = origin.price_time;
  }
  return result;
}

absl::StatusOr<ProvisionResult> MakeProvision(const model::PlanRequest& request, const NamedSchedule& schedule) {
  MEDLEY_RETURN_IF_ERROR(model::Validate(request));
  MEDLEY_RETURN_IF_ERROR(CheckGoalIsCost(request));
  if (auto unpriced = Unpriced(request); !unpriced.empty()) return ProvisionResult{std::nullopt, std::move(unpriced)};
  MEDLEY_ASSIGN_OR_RETURN(const Problem problem, Problem::Compile(request));
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<StageChoice> stages, ReadSchedule(problem, schedule.types, schedule.cuts));
  ProvisionResult result;
  if (const auto plan = ProvisionExact(problem, stages)) {
    result.plan = Evaluate(problem, plan->stages).plan;
    return result;
  }
  result.reasons = WhyNotProvisioned(problem, stages);
  return result;
}

absl::StatusOr<ProvisionResult> MakeEvaluation(const model::PlanRequest& request, const NamedSchedule& schedule,
                                               const std::vector<int>& units) {
  MEDLEY_RETURN_IF_ERROR(model::Validate(request));
  MEDLEY_RETURN_IF_ERROR(CheckGoalIsCost(request));
  if (auto unpriced = Unpriced(request); !unpriced.empty()) return ProvisionResult{std::nullopt, std::move(unpriced)};
  MEDLEY_ASSIGN_OR_RETURN(const Problem problem, Problem::Compile(request));
  MEDLEY_ASSIGN_OR_RETURN(std::vector<StageChoice> stages, ReadSchedule(problem, schedule.types, schedule.cuts));
  MEDLEY_RETURN_IF_ERROR(SetUnits(units, stages));
  Evaluation evaluation = Evaluate(problem, stages);
  return ProvisionResult{std::move(evaluation.plan), std::move(evaluation.violations)};
}

}  // namespace medley::sched
