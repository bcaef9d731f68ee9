#include "operator/lifecycle/consider.h"

#include <utility>

#include "common/base/status.h"
#include "operator/builders/slots.h"
#include "operator/lifecycle/feedback.h"
#include "operator/lifecycle/goal.h"
#include "operator/lifecycle/infeasible_words.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/placement.h"
#include "operator/lifecycle/planning.h"
#include "operator/lifecycle/refusal.h"
#include "operator/lifecycle/replan_decision.h"
#include "operator/lifecycle/replanning.h"
#include "operator/lifecycle/sizes.h"
#include "operator/lifecycle/spot_wait.h"

namespace medley::ops::lifecycle {
namespace {

// Questions after a plan whose units are free only once its switch is over, each with fewer units.
constexpr int kMostNarrowed = 4;

// The service does not correct a profile that says it was calibrated.
model::Profile Uncorrected(model::Profile profile) {
  for (model::Layer& layer : profile.model.layers) {
    for (model::LayerProfile& p : layer.profiles) p.origin = "calibrated";
  }
  return profile;
}

// What a search has found, and what the same profiles promise for the present plan, to compare with.
struct Candidate {
  model::PlanResult result;
  double present_estimate = 0;  // samples/s
};

MoveInputs InputsOfMove(const Pass& pass, const TrainingJob& job, const PlanSearch& search,
                        const Candidate& candidate) {
  const UsablePools& pools = search.offered->pools;
  const JobProgress& progress = search.progress;
  const model::PlanResult& result = candidate.result;
  const PlanRecord& record = *pass.memory.stored_plan.record;
  const auto& last_rescale = pass.report.last_rescale;
  MoveInputs inputs;
  inputs.remaining_samples = pass.observed->samples_total > 0
                                 ? progress.remaining_samples
                                 : static_cast<double>(search.offered->profile->samples_per_epoch) * job.epochs;
  inputs.current_usd_per_hour = record.UsdPerHour(pools.paid);
  inputs.current_throughput = pass.observed->throughput;
  inputs.current_estimated_throughput = candidate.present_estimate;
  inputs.candidate_usd_per_hour = result.plan->cost_per_hour;
  inputs.candidate_estimated_throughput =
      result.plan->throughput / (progress.calibration > 0 ? progress.calibration : 1);
  inputs.same_plan = SameShape(record.plan, *result.execution_plan) && SameZones(record.slots, pools.zones);
  inputs.pause_seconds = last_rescale ? last_rescale->pause_seconds : pass.options.default_pause_seconds;
  inputs.warm_up_seconds = pass.options.default_warm_up_seconds;
  inputs.min_saving = job.elasticity.min_saving;
  inputs.cooldown_seconds = job.elasticity.cooldown_seconds;
  const bool never_moved = record.reason == Reason::kFirstPlan || record.reason == Reason::kResumed;
  inputs.seconds_since_last_move = never_moved ? 1e9 : SecondsSince(record.accepted_at, pass.world.now);
  inputs.forced = search.forced;
  inputs.fastest = job.objective.fastest;
  inputs.least_usd_per_hour = job.objective.least_usd_per_hour;
  return inputs;
}

// Stores the hash of the policy that was considered, so that the next leader does not consider the same edit again.
absl::Status StorePolicy(Pass& pass, const TrainingJob& job, const PlanningInputs& considered) {
  PlanRecord record = *pass.memory.stored_plan.record;
  if (record.policy == considered.PolicyHash()) return absl::OkStatus();
  record.policy = considered.PolicyHash();
  return StorePlan(pass, job, record);
}

// The answer with which the search is judged; nullopt: there is none, or not yet.
absl::StatusOr<std::optional<Candidate>> FindCandidate(Pass& pass, const TrainingJob& job, PlanSearch& search) {
  const PlanRecord& record = *pass.memory.stored_plan.record;
  const double estimated =
      record.uncorrected_throughput > 0 ? record.uncorrected_throughput : record.plan.estimate.throughput;
  const double measured = pass.observed->throughput;
  if (search.corrected == nullptr) {
    MEDLEY_ASSIGN_OR_RETURN(const SearchAnswer answer, AskPlanner(pass, job, search));
    if (!answer.found) return std::optional<Candidate>();
    // The curves go through what the job has measured.
    if (KnowsSize(pass) && measured > 0) return std::optional(Candidate{*answer.found, measured});
    const auto& prediction = answer.found->prediction;
    if (answer.found->plan || !IsCorrected(prediction)) {
      return std::optional(Candidate{*answer.found, PresentEstimate(estimated, measured, prediction)});
    }
    // With the measured corrections no plan reaches the goal. What the uncorrected profiles promise may still be better
    // than to stay; the job was planned with them before anything was measured.
    search = WithProfile(search, job, Uncorrected(*search.offered->profile));
    search.corrected = std::make_shared<const model::PlanResult>(*answer.found);
  }
  MEDLEY_ASSIGN_OR_RETURN(const SearchAnswer promised, AskPlanner(pass, job, search));
  if (promised.pending) return std::optional<Candidate>();
  const auto& prediction = search.corrected->prediction;
  if (!promised.found || !promised.found->plan) {
    return std::optional(Candidate{*search.corrected, PresentEstimate(estimated, measured, prediction)});
  }
  const double ratio = prediction->ratio_uncorrected;
  return std::optional(Candidate{*promised.found, ratio > 0 ? measured / ratio : estimated});
}

bool ReachesGoalAsMeasured(const Pass& pass, const TrainingJob& job, const PlanSearch& search) {
  if (search.forced) return false;  // the plan in force cannot stay
  const PlanRecord& record = *pass.memory.stored_plan.record;
  const JobProgress progress = ProgressOf(pass);
  const Measured measured{pass.observed->throughput, record.UsdPerHour(search.offered->pools.paid),
                          progress.remaining_samples, progress.elapsed_seconds, progress.spent_usd};
  return HasWantedUnits(job.elasticity, record.plan) && ReachesGoal(job.objective, measured);
}

absl::Status Pursue(Pass& pass, const TrainingJob& job, PlanSearch search);

// No plan meets the goal in the zones of the search.
absl::Status HandleInfeasible(Pass& pass, const TrainingJob& job, const PlanSearch& search,
                              const std::vector<model::Reason>& reasons) {
  MEDLEY_ASSIGN_OR_RETURN(std::optional<UsablePools> others, PoolsInOtherZones(pass, job, search.offered->pools));
  if (others) return Pursue(pass, job, WithPools(search, job, *std::move(others)));
  if (search.reason == Reason::kMemberUnschedulable) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string stuck, StuckPool(pass));
    MEDLEY_ASSIGN_OR_RETURN(const bool left, GiveUpPlacement(pass, job, stuck));
    if (left) return absl::OkStatus();
  }
  if (search.reason == Reason::kCapacityLowered) NoteInfeasibleUnits(pass, search.considered.units);
  if (ReachesGoalAsMeasured(pass, job, search)) {
    NoteMetGoal(pass);
    PublishReplan(pass, "ReplanConsidered",
                  fmt::format("{}: stay (GoalReached): predictions say that no plan reaches the goal, but the plan in "
                              "force reaches it as measured, with {:.0f} samples/s",
                              ToString(search.reason), pass.observed->throughput));
    return StorePolicy(pass, job, search.considered);
  }
  ExplainInfeasible(pass, reasons, search.offered->pools);
  return StorePolicy(pass, job, search.considered);
}

// Not worth a move in the zones that the job keeps: perhaps in the cheapest ones.
absl::Status TryCheapestZones(Pass& pass, const TrainingJob& job, const PlanSearch& search) {
  const UsablePools& pools = search.offered->pools;
  if (pools.cheaper.empty()) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const PoolChoice choice, FindUsablePools(pass, job, ZonePreference::kCheapest));
  if (choice.refusal) return absl::OkStatus();
  return Pursue(pass, job, WithPools(search, job, choice.pools.Only(pools.Names())));
}

// The pools as they are while the pods of both plans exist; nullopt: the same.
std::optional<UsablePools> PoolsDuringSwitch(UsablePools pools, const std::map<std::string, int>& leaving) {
  bool smaller = false;
  for (PoolView& view : pools.pools) {
    const auto units = leaving.find(view.pool.name);
    if (units == leaving.end() || view.units <= 0) continue;
    view.units = std::max(0, view.units - units->second);
    smaller = true;
  }
  if (!smaller) return std::nullopt;
  return pools;
}

// The units of the plan that was found are free only once the job's present pods are deleted: another plan may do
// without them. Once that one is in force, they count as new, and the first one is considered again.
absl::Status PursueNarrower(Pass& pass, const TrainingJob& job, const PlanSearch& search) {
  std::optional<UsablePools> pools = PoolsDuringSwitch(search.offered->pools, pass.memory.planning.leaving);
  if (!pools || search.narrowed >= kMostNarrowed) return absl::OkStatus();
  EndPauseAfterRefusal(pass);
  PlanSearch narrower = WithPools(search, job, *std::move(pools));
  ++narrower.narrowed;
  return Pursue(pass, job, std::move(narrower));
}

absl::Status StayForSpot(Pass& pass, const PlanSearch& search, const SpotAdvice& advice) {
  pass.Publish(CountReplan{advice.reason});
  PublishReplan(pass, "ReplanConsidered",
                fmt::format("{}: stay ({}): {}", ToString(search.reason), advice.reason, advice.sentence));
  ForgetAvoidedZones(pass);  // every zone may have units again
  return absl::OkStatus();
}

absl::Status Judge(Pass& pass, const TrainingJob& job, const PlanSearch& search, const Candidate& candidate) {
  if (search.reason == Reason::kPredictionCorrected) NotePromiseConsidered(pass);
  ConsiderState& state = pass.Own(&Memory::consider);
  const std::optional<PlanningInputs> before = std::exchange(state.considered, search.considered);
  state.delayed.reset();
  // No plan can be switched to now: it is asked again later.
  const auto give_up = [&] {
    state.considered = before;
    state.refused = search.seen;
    PauseAfterRefusal(pass);
    return absl::OkStatus();
  };
  if (!candidate.result.plan || !candidate.result.execution_plan) {
    if (search.narrowed > 0) {
      PublishReplan(pass, "ReplanRefused",
                    "The job keeps its plan: with the units that are free during a switch no plan meets the goal: " +
                        InWords(candidate.result.reasons, search.offered->pools));
      return give_up();
    }
    return HandleInfeasible(pass, job, search, candidate.result.reasons);
  }
  NoteMetGoal(pass);
  MoveInputs inputs = InputsOfMove(pass, job, search, candidate);
  AddSpotRisk(pass, job, search, candidate.result, inputs);
  if (const auto advice = AdviseAgainstMove(pass, job, search, candidate.result, inputs)) {
    state.considered = before;  // asked again when the wait is over
    return StayForSpot(pass, search, *advice);
  }
  const MoveDecision decision = DecideMove(inputs);
  pass.Publish(CountReplan{decision.reason});
  PublishReplan(
      pass, "ReplanConsidered",
      fmt::format("{}: {} ({}): {}{}", ToString(search.reason), decision.move ? "move" : "stay", decision.reason,
                  search.narrowed > 0 ? "with the units that are free during a switch, " : "", decision.sentence));
  if (!decision.move && search.narrowed > 0) return give_up();
  if (decision.reason == "Cooldown") {
    const base::nanoseconds left = base::FromSeconds(inputs.cooldown_seconds - inputs.seconds_since_last_move);
    state.delayed = {search.reason, pass.world.steady + left};
    pass.RequeueAfter(left);
  }
  if (!decision.move) {
    MEDLEY_RETURN_IF_ERROR(StorePolicy(pass, job, search.considered));
    return TryCheapestZones(pass, job, search);
  }
  const int64_t from = pass.memory.stored_plan.record->plan.generation;
  MEDLEY_ASSIGN_OR_RETURN(const bool accepted, Accept(pass, job, search, candidate.result, search.reason));
  if (!accepted) {
    state.considered = before;  // asked again later
    state.refused = search.seen;
    return PursueNarrower(pass, job, search);
  }
  state.considered->cheaper.clear();  // cheaper zones are considered once this plan is in force
  SetCondition(pass, kRescalingCondition, ConditionStatus::kTrue, search.reason,
               fmt::format("from generation {} to generation {}: {}", from,
                           pass.memory.stored_plan.record->plan.generation, decision.sentence));
  pass.RequeueAfter(base::nanoseconds(1));  // the next pass creates the pods
  return absl::OkStatus();
}

absl::Status Pursue(Pass& pass, const TrainingJob& job, PlanSearch search) {
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<Candidate> candidate, FindCandidate(pass, job, search));
  if (!candidate) return absl::OkStatus();  // asked again later, because ConsiderState::considered is unchanged
  return Judge(pass, job, search, *candidate);
}

// What made a forced search necessary may be over when its answer comes.
absl::StatusOr<bool> IsStillWanted(Pass& pass, const TrainingJob& job, const PlanSearch& search) {
  if (search.reason == Reason::kPlanRefused) return IsRefused(pass);
  if (search.reason == Reason::kThroughputBelowGoal) return IsBelowGoal(pass, job);
  if (search.reason == Reason::kMemberUnschedulable) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string stuck, StuckPool(pass));
    return !stuck.empty();
  }
  if (search.reason == Reason::kCapacityLowered || search.reason == Reason::kPoolUnusable) {
    MEDLEY_ASSIGN_OR_RETURN(const PoolChoice choice, FindUsablePools(pass, job));
    return choice.refusal.has_value() || !PlanFits(pass, choice.pools);  // a pool that cannot be used has no units
  }
  return true;
}

}  // namespace

JobProgress ProgressOf(const Pass& pass) {
  JobProgress progress;
  progress.elapsed_seconds = SecondsSince(pass.report.start_time, pass.world.now);
  progress.remaining_samples =
      static_cast<double>(std::max<int64_t>(0, pass.observed->samples_total - pass.observed->samples_done));
  const std::optional<CostStatus>& cost = pass.report.cost;
  progress.spent_usd = cost ? cost->spent_usd : 0;
  return progress;
}

void NoteConsidered(Pass& pass, const PlanningInputs& inputs) { pass.Own(&Memory::consider).considered = inputs; }

void ForgetConsidered(Pass& pass) { pass.Own(&Memory::consider).considered.reset(); }

void NoteConsideredUnits(Pass& pass, const std::string& pool, int units) {
  std::optional<PlanningInputs>& considered = pass.Own(&Memory::consider).considered;
  if (considered) considered->units[pool] = units;
}

absl::Status Consider(Pass& pass, const TrainingJob& job, const Considered& what, const ProfiledPools& profiled) {
  JobProgress progress = ProgressOf(pass);
  const double estimated = pass.memory.stored_plan.record->plan.estimate.throughput;
  if (what.reason == Reason::kThroughputBelowGoal && estimated > 0 && !KnowsSize(pass)) {
    progress.calibration = pass.observed->throughput / estimated;
  }
  PlanSearch search = NewSearch(pass, job, profiled, progress);
  search.reason = what.reason;
  search.forced = what.forced;
  search.evacuates = what.evacuates;
  search.considered = what.inputs;
  search.seen = what.seen;
  return Pursue(pass, job, std::move(search));
}

absl::Status ContinueSearch(Pass& pass, const TrainingJob& job) {
  const std::optional<PlanSearch> search = pass.memory.search.pending;
  if (!search) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const bool wanted, IsStillWanted(pass, job, *search));
  if (!wanted) {
    DropSearch(pass);
    return absl::OkStatus();
  }
  MEDLEY_RETURN_IF_ERROR(Pursue(pass, job, *search));
  const bool judged = !pass.memory.search.pending && pass.memory.stored_plan.record &&
                      pass.memory.consider.considered == search->considered;
  return judged ? LookAgainIfChanged(pass, job, *search) : absl::OkStatus();
}

}  // namespace medley::ops::lifecycle
