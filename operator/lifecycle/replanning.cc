#include "operator/lifecycle/replanning.h"

#include <algorithm>
#include <utility>

#include "common/base/hash.h"
#include "common/base/status.h"
#include "operator/builders/slots.h"
#include "operator/lifecycle/disruption.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/placement.h"
#include "operator/lifecycle/planning.h"
#include "operator/lifecycle/pod_state.h"
#include "operator/lifecycle/refusal.h"
#include "operator/lifecycle/replan_decision.h"
#include "operator/lifecycle/running.h"

namespace medley::ops::lifecycle {
namespace {

// A job counts as below its goal under this share of it, because measurements vary.
constexpr double kGoalTolerance = 0.95;

// The service does not correct a profile that says it was calibrated.
model::Profile Uncorrected(model::Profile profile) {
  for (model::Layer& layer : profile.model.layers) {
    for (model::LayerProfile& p : layer.profiles) p.origin = "calibrated";
  }
  return profile;
}

JobProgress ProgressOf(const Pass& pass) {
  JobProgress progress;
  progress.elapsed_seconds = SecondsSince(pass.memory.status.current.start_time, pass.world.now);
  progress.remaining_samples =
      static_cast<double>(std::max<int64_t>(0, pass.observed->samples_total - pass.observed->samples_done));
  progress.spent_usd = pass.observed->usd_spent;
  return progress;
}

bool MissesGoalForLong(Pass& pass, const TrainingJob& job) {
  auto& since = pass.memory.replanning.below_goal_since;
  if (pass.observed->throughput <= 0 || !IsBelowGoal(pass, job)) {
    since.reset();
    return false;
  }
  if (!since) since = pass.world.steady;
  const base::nanoseconds missed = pass.world.steady - *since;
  if (missed < pass.options.goal_window) {
    pass.RequeueAfter(pass.options.goal_window - missed);
    return false;
  }
  since.reset();
  return true;
}

// The pool offers only the units whose pods have a node.
void OfferOnlyScheduled(const Pass& pass, const std::string& pool, UsablePools& pools) {
  int scheduled = 0;
  for (const auto& [name, pod] : pass.world.pods) {
    scheduled += pod->label("medley.dev/pool") == pool && !pod->String("/spec/nodeName").empty() ? 1 : 0;
  }
  for (PoolView& view : pools.pools) {
    if (view.pool.name == pool) view.units = std::min(view.units, scheduled);
  }
}

// True when a price is not as it was. A price that is absent now is no reason to consider anything.
bool HasNewPrice(const std::map<std::string, double>& before, const std::map<std::string, double>& now) {
  return std::any_of(now.begin(), now.end(), [&](const auto& price) {
    const auto known = before.find(price.first);
    return known == before.end() || known->second != price.second;
  });
}

// True when the price of a known pool has changed. UnitsReason handles pools that are new.
bool PricesDiffer(const std::map<std::string, double>& before, const std::map<std::string, double>& now) {
  return std::any_of(now.begin(), now.end(), [&](const auto& price) {
    const auto known = before.find(price.first);
    return known != before.end() && known->second != price.second;
  });
}

// An operator that has just started: what changed while it did not look?
std::string ReasonAfterStart(Pass& pass, const TrainingJob& job, const PlanningInputs& now) {
  const PlanRecord& record = *pass.memory.planning.record;
  if (!record.policy.empty() && record.policy != now.PolicyHash()) return "ObjectiveChanged";
  const bool has_new_price = !now.cheaper.empty() || HasNewPrice(record.usd_per_unit_hour, now.prices);
  if (has_new_price && job.elasticity.on_price_change) return "PriceChanged";
  pass.memory.replanning.considered = now;
  return "";
}

// The reason of a move that was delayed, once its time has come.
std::string DelayedReason(Pass& pass) {
  auto& delayed = pass.memory.replanning.delayed;
  if (!delayed) return "";
  if (pass.world.steady < delayed->until) {
    pass.RequeueAfter(delayed->until - pass.world.steady);
    return "";
  }
  return delayed->reason;
}

std::string ReplanReason(Pass& pass, const TrainingJob& job, const UsablePools& pools, const PlanningInputs& now,
                         bool* forced) {
  const PlanRecord& record = *pass.memory.planning.record;
  for (const MemberSlot& slot : record.slots) {
    if (now.prices.contains(slot.pool)) continue;
    *forced = true;
    return "PoolUnusable";
  }
  if (std::string reason = UnitsReason(pass, job, pools, now, forced); !reason.empty()) return reason;
  if (record.Trainers() > job.elasticity.max_units) {
    *forced = true;
    return "MaxUnitsLowered";
  }
  const auto& before = pass.memory.replanning.considered;
  if (!before) return ReasonAfterStart(pass, job, now);
  if (before->policy != now.policy) return "ObjectiveChanged";
  const bool has_new_price = PricesDiffer(before->prices, now.prices) || HasNewPrice(before->cheaper, now.cheaper);
  if (has_new_price && job.elasticity.on_price_change) return "PriceChanged";
  return DelayedReason(pass);
}

MoveInputs InputsOfMove(const Pass& pass, const TrainingJob& job, const UsablePools& pools,
                        const model::Profile& profile, const JobProgress& progress, const model::PlanResult& result,
                        double present_estimate, bool forced) {
  const PlanRecord& record = *pass.memory.planning.record;
  const auto& last_rescale = pass.memory.status.current.last_rescale;
  MoveInputs inputs;
  inputs.remaining_samples = pass.observed->samples_total > 0
                                 ? progress.remaining_samples
                                 : static_cast<double>(profile.samples_per_epoch) * job.epochs;
  inputs.current_usd_per_hour = record.UsdPerHour(pools.paid);
  inputs.current_throughput = pass.observed->throughput;
  inputs.current_estimated_throughput = present_estimate;
  inputs.candidate_usd_per_hour = result.plan->cost_per_hour;
  inputs.candidate_estimated_throughput =
      result.plan->throughput / (progress.calibration > 0 ? progress.calibration : 1);
  inputs.same_plan = SameShape(record.plan, *result.execution_plan) && SameZones(record.slots, pools.zones);
  inputs.pause_seconds = last_rescale ? last_rescale->pause_seconds : pass.options.default_pause_seconds;
  inputs.warm_up_seconds = pass.options.default_warm_up_seconds;
  inputs.min_saving = job.elasticity.min_saving;
  inputs.cooldown_seconds = job.elasticity.cooldown_seconds;
  const bool never_moved = record.reason == "FirstPlan" || record.reason == "Resumed";
  inputs.seconds_since_last_move = never_moved ? 1e9 : SecondsSince(record.accepted_at, pass.world.now);
  inputs.forced = forced;
  return inputs;
}

// A plan and what it promises for the present plan, to compare with.
struct Candidate {
  std::optional<model::PlanResult> result;
  double present_estimate = 0;
};

absl::StatusOr<Candidate> FindCandidate(Pass& pass, const TrainingJob& job, const UsablePools& pools,
                                        const model::Profile& profile, const JobProgress& progress) {
  const double estimated = pass.memory.planning.record->plan.estimate.throughput;
  const double measured = pass.observed->throughput;
  Candidate found;
  MEDLEY_ASSIGN_OR_RETURN(found.result, AskPlanner(pass, job, pools, profile, progress));
  if (!found.result) return found;
  const auto& prediction = found.result->prediction;
  found.present_estimate = PresentEstimate(estimated, measured, prediction);
  if (found.result->plan || !IsCorrected(prediction)) return found;
  // With the measured corrections no plan reaches the goal. What the uncorrected profiles promise may still be better
  // than to stay; the job was planned with them before anything was measured.
  const double ratio = prediction->ratio_uncorrected;
  MEDLEY_ASSIGN_OR_RETURN(std::optional<model::PlanResult> promised,
                          AskPlanner(pass, job, pools, Uncorrected(profile), progress));
  if (promised && promised->plan) {
    found.result = std::move(promised);
    found.present_estimate = ratio > 0 ? measured / ratio : estimated;
  }
  return found;
}

// Stores the hash of the policy that was considered, so that the next leader does not consider the same edit again.
absl::Status StorePolicy(Pass& pass, const TrainingJob& job, const PlanningInputs& considered) {
  PlanRecord record = *pass.memory.planning.record;
  if (record.policy == considered.PolicyHash()) return absl::OkStatus();
  record.policy = considered.PolicyHash();
  return StorePlan(pass, job, record);
}

absl::Status ConsiderCheapestZones(Pass& pass, const TrainingJob& job, const std::string& reason, bool forced,
                                   ProfiledPools profiled, const PlanningInputs& considered) {
  MEDLEY_ASSIGN_OR_RETURN(const PoolChoice choice, FindUsablePools(pass, job, ZonePreference::kCheapest));
  if (choice.refusal) return absl::OkStatus();
  profiled.pools = choice.pools.Only(profiled.pools.Names());
  return Consider(pass, job, reason, forced, profiled, considered);
}

// Pods of `pool` find no node in the zone that they are pinned to: the job avoids it. True: `pools` now has the pool in
// a zone that was not tried yet.
absl::StatusOr<bool> LeaveZone(Pass& pass, const TrainingJob& job, const std::string& pool, UsablePools& pools) {
  const std::string zone = pass.memory.planning.record->Zones()[pool];
  if (zone.empty()) return false;
  std::set<std::string>& avoided = pass.memory.replanning.avoided_zones[pool];
  avoided.insert(zone);
  pass.memory.replanning.stuck_zones[pool][zone] = pass.world.steady;
  MEDLEY_ASSIGN_OR_RETURN(const PoolChoice choice, FindUsablePools(pass, job));
  if (choice.refusal) return false;
  pools = choice.pools.Only(pools.Names());
  return !avoided.contains(pools.zones[pool]);
}

// True when a pool that the plan trains on has lost its profile: it is measured again before another plan is compared.
bool LacksProfile(Pass& pass, const UsablePools& usable, const UsablePools& profiled) {
  const auto& slots = pass.memory.planning.record->slots;
  const bool lacks = std::any_of(slots.begin(), slots.end(), [&](const MemberSlot& slot) {
    const bool trains = slot.role == Role::kTrainer;
    return trains && usable.Find(slot.pool) != nullptr && profiled.Find(slot.pool) == nullptr;
  });
  if (lacks) {
    PublishUnplanned(pass, {ConditionStatus::kFalse, "Profiling",
                            "A pool of the plan has lost its profile. The job keeps its plan until the layers are "
                            "measured there again, which needs a free unit of the pool."});
  }
  return lacks;
}

}  // namespace

std::string PlanningInputs::PolicyHash() const { return base::HashHex(policy); }

PlanningInputs InputsOf(const TrainingJob& job, const UsablePools& pools) {
  PlanningInputs inputs;
  inputs.prices = pools.prices;
  inputs.cheaper = pools.cheaper;
  inputs.units = pools.Units();
  kube::Json policy = kube::Json::object();
  for (const char* part : {"objective", "elasticity", "planner", "resources"}) {
    if (job.spec.contains(part)) policy[part] = job.spec[part];
  }
  inputs.policy = policy.dump();
  return inputs;
}

bool IsBelowGoal(const Pass& pass, const TrainingJob& job) {
  return pass.observed->throughput < job.objective.min_throughput * kGoalTolerance;
}

bool IsSettled(const Pass& pass, const TrainingJob& job) {
  const Conditions& conditions = pass.memory.status.current.conditions;
  return pass.memory.planning.record && IsInForce(pass) && pass.observed->phase == JobPhase::kTraining &&
         conditions.IsTrue(kPodsReadyCondition) && conditions.IsTrue(kPlannedCondition) && !IsBelowGoal(pass, job);
}

void PublishReplan(Pass& pass, const char* event_reason, const std::string& message) {
  if (pass.memory.replanning.last_event == message) return;
  pass.memory.replanning.last_event = message;
  pass.Event(event_reason, message);
}

void PublishUnplanned(Pass& pass, const Unplanned& why) {
  if (why.status != ConditionStatus::kFalse || pass.memory.replanning.last_event == why.message) return;
  pass.memory.replanning.last_event = why.message;
  pass.Warning(why.reason, why.message);
}

absl::Status Replan(Pass& pass, const TrainingJob& job) {
  if (pass.coordinator.empty() || pass.observed == nullptr) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const bool moved, EvacuateNodes(pass, job));
  if (moved) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const std::string stuck, StuckPool(pass));
  const bool refused = IsRefused(pass);  // and there is no plan to go back to
  const bool must_move = !stuck.empty() || refused;
  if (!job.elasticity.enabled && !must_move) return absl::OkStatus();
  if (pass.Lasts(pass.memory.planning.after_refusal)) return absl::OkStatus();
  // While a switch is under way there is nothing to compare with, unless it cannot come about.
  const bool stable =
      IsInForce(pass) && pass.observed->phase == JobPhase::kTraining && pass.observed->samples_total > 0;
  if (!stable && !must_move) return absl::OkStatus();
  if (IsInForce(pass)) {
    pass.memory.replanning.avoided_zones.clear();
    pass.memory.placement.released = 0;
  }
  MEDLEY_ASSIGN_OR_RETURN(const PoolChoice choice, FindUsablePools(pass, job));
  if (choice.refusal) {
    PublishUnplanned(pass, *choice.refusal);
    return absl::OkStatus();
  }
  MEDLEY_ASSIGN_OR_RETURN(ProfiledPools profiled, FindProfiledPools(pass, job, choice.pools));
  if (!profiled.profile) return absl::OkStatus();
  if (!must_move && LacksProfile(pass, choice.pools, profiled.pools)) return absl::OkStatus();
  UsablePools& pools = profiled.pools;
  PlanningInputs now = InputsOf(job, pools);
  bool forced = false;
  std::string reason = job.elasticity.enabled ? ReplanReason(pass, job, pools, now, &forced) : "";
  if (reason.empty() && !stuck.empty()) {
    reason = "MemberUnschedulable";
    forced = true;
    MEDLEY_ASSIGN_OR_RETURN(const bool elsewhere, LeaveZone(pass, job, stuck, pools));
    if (!elsewhere) {
      OfferOnlyScheduled(pass, stuck, pools);
      now.units = pools.Units();
    }
  }
  if (reason.empty() && refused) {
    reason = "PlanRefused";
    forced = true;
  }
  if (reason.empty() && MissesGoalForLong(pass, job)) {
    reason = "ThroughputBelowGoal";
    forced = true;
  }
  if (reason.empty()) return absl::OkStatus();
  if (reason == "ObjectiveChanged") {
    const double most = job.objective.max_usd_per_hour;
    forced =
        forced || IsBelowGoal(pass, job) || (most > 0 && pass.memory.planning.record->UsdPerHour(pools.paid) > most);
    pass.memory.replanning.last_event.clear();  // an edit gets an Event, also if it repeats the one before
  }
  return Consider(pass, job, reason, forced, profiled, now);
}

absl::Status Consider(Pass& pass, const TrainingJob& job, const std::string& reason, bool forced,
                      const ProfiledPools& profiled, const PlanningInputs& considered) {
  ReplanningState& state = pass.memory.replanning;
  const UsablePools& pools = profiled.pools;
  const model::Profile& profile = *profiled.profile;
  JobProgress progress = ProgressOf(pass);
  const double estimated = pass.memory.planning.record->plan.estimate.throughput;
  if (reason == "ThroughputBelowGoal" && estimated > 0) progress.calibration = pass.observed->throughput / estimated;
  MEDLEY_ASSIGN_OR_RETURN(const Candidate candidate, FindCandidate(pass, job, pools, profile, progress));
  const std::optional<model::PlanResult>& result = candidate.result;
  if (!result) return absl::OkStatus();  // asked again later, because `considered` is unchanged
  const std::optional<PlanningInputs> before = std::exchange(state.considered, considered);
  state.delayed.reset();
  if (!result->plan || !result->execution_plan) {
    MEDLEY_ASSIGN_OR_RETURN(std::optional<UsablePools> others, PoolsInOtherZones(pass, job, pools));
    if (others) {
      ProfiledPools elsewhere = profiled;
      elsewhere.pools = *std::move(others);
      return Consider(pass, job, reason, forced, elsewhere, considered);
    }
    if (reason == "MemberUnschedulable") {
      MEDLEY_ASSIGN_OR_RETURN(const std::string stuck, StuckPool(pass));
      MEDLEY_ASSIGN_OR_RETURN(const bool left, GiveUpPlacement(pass, job, stuck));
      if (left) return absl::OkStatus();
    }
    if (reason == "CapacityLowered") pass.memory.units.infeasible_units = state.considered->units;
    ExplainInfeasible(pass, result->reasons, pools);
    return StorePolicy(pass, job, considered);
  }
  const MoveInputs inputs =
      InputsOfMove(pass, job, pools, profile, progress, *result, candidate.present_estimate, forced);
  const MoveDecision decision = DecideMove(inputs);
  pass.Publish(CountReplan{decision.reason});
  PublishReplan(
      pass, "ReplanConsidered",
      fmt::format("{}: {} ({}): {}", reason, decision.move ? "move" : "stay", decision.reason, decision.sentence));
  if (decision.reason == "Cooldown") {
    const base::nanoseconds left = base::FromSeconds(inputs.cooldown_seconds - inputs.seconds_since_last_move);
    state.delayed = {reason, pass.world.steady + left};
    pass.RequeueAfter(left);
  }
  if (!decision.move) {
    MEDLEY_RETURN_IF_ERROR(StorePolicy(pass, job, considered));
    // Not worth a move in the zones that the job keeps: perhaps in the cheapest ones.
    return pools.cheaper.empty() ? absl::OkStatus()
                                 : ConsiderCheapestZones(pass, job, reason, forced, profiled, considered);
  }
  const int64_t from = pass.memory.planning.record->plan.generation;
  MEDLEY_ASSIGN_OR_RETURN(const bool accepted, Accept(pass, job, *result, pools, profile, reason));
  if (!accepted) {
    state.considered = before;  // asked again later
    return absl::OkStatus();
  }
  state.considered->cheaper.clear();  // cheaper zones are considered once this plan is in force
  SetCondition(pass, kRescalingCondition, ConditionStatus::kTrue, reason,
               fmt::format("from generation {} to generation {}: {}", from,
                           pass.memory.planning.record->plan.generation, decision.sentence));
  pass.RequeueAfter(base::nanoseconds(1));  // the next pass creates the pods
  return absl::OkStatus();
}

}  // namespace medley::ops::lifecycle
