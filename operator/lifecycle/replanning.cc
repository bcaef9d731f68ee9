#include "operator/lifecycle/replanning.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "operator/lifecycle/consider.h"
#include "operator/lifecycle/disruption.h"
#include "operator/lifecycle/feedback.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/placement.h"
#include "operator/lifecycle/planning.h"
#include "operator/lifecycle/pod_state.h"
#include "operator/lifecycle/refusal.h"
#include "operator/lifecycle/running.h"
#include "operator/lifecycle/spot_wait.h"
#include "operator/lifecycle/status.h"

namespace medley::ops::lifecycle {
namespace {

// A job counts as below its goal under this share of it, because measurements vary.
constexpr double kGoalTolerance = 0.95;

bool MissesGoalForLong(Pass& pass, const TrainingJob& job) {
  auto& since = pass.Own(&Memory::replanning).below_goal_since;
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
std::optional<Reason> ReasonAfterStart(Pass& pass, const TrainingJob& job, const PlanningInputs& now) {
  const PlanRecord& record = *pass.memory.stored_plan.record;
  if (!record.policy.empty() && record.policy != now.PolicyHash()) return Reason::kObjectiveChanged;
  const bool has_new_price = !now.cheaper.empty() || HasNewPrice(record.usd_per_unit_hour, now.prices);
  if (has_new_price && job.elasticity.on_price_change) return Reason::kPriceChanged;
  NoteConsidered(pass, now);
  return std::nullopt;
}

// True if a plan that could not get its units may get them now: some pool has more units, or another plan is best.
// Fewer units are no reason to ask, however often other jobs take some.
bool MayBePossibleNow(const PlanningInputs& refused, const PlanningInputs& now) {
  if (refused.policy != now.policy || refused.prices != now.prices || refused.cheaper != now.cheaper) return true;
  return std::ranges::any_of(now.units, [&](const auto& units) {
    const auto known = refused.units.find(units.first);
    return known == refused.units.end() || known->second < units.second;
  });
}

// The reason of a move that was delayed, once its time has come.
std::optional<Reason> DelayedReason(Pass& pass) {
  const auto& delayed = pass.memory.consider.delayed;
  if (!delayed) return std::nullopt;
  if (pass.world.steady < delayed->until) {
    pass.RequeueAfter(delayed->until - pass.world.steady);
    return std::nullopt;
  }
  return delayed->reason;
}

std::optional<Reason> ReplanReason(Pass& pass, const TrainingJob& job, const UsablePools& pools,
                                   const PlanningInputs& now, bool* forced) {
  const PlanRecord& record = *pass.memory.stored_plan.record;
  for (const MemberSlot& slot : record.slots) {
    if (now.prices.contains(slot.pool)) continue;
    *forced = true;
    return Reason::kPoolUnusable;
  }
  if (const auto reason = UnitsReason(pass, job, pools, now, forced)) return reason;
  if (record.Trainers() > job.elasticity.max_units) {
    *forced = true;
    return Reason::kMaxUnitsLowered;
  }
  const auto& before = pass.memory.consider.considered;
  if (!before) return ReasonAfterStart(pass, job, now);
  if (before->policy != now.policy) return Reason::kObjectiveChanged;
  const bool has_new_price = PricesDiffer(before->prices, now.prices) || HasNewPrice(before->cheaper, now.cheaper);
  if (has_new_price && job.elasticity.on_price_change) return Reason::kPriceChanged;
  return DelayedReason(pass);
}

// Pods of `pool` find no node in the zone that they are pinned to: the job avoids it. True: `pools` now has the pool in
// a zone that was not tried yet.
absl::StatusOr<bool> LeaveZone(Pass& pass, const TrainingJob& job, const std::string& pool, UsablePools& pools) {
  const std::string zone = pass.memory.stored_plan.record->Zones()[pool];
  if (zone.empty()) return false;
  AvoidZone(pass, pool, zone);
  MEDLEY_ASSIGN_OR_RETURN(const PoolChoice choice, FindUsablePools(pass, job));
  if (choice.refusal) return false;
  pools = choice.pools.Only(pools.Names());
  return !pass.memory.pools.avoided_zones.at(pool).contains(pools.zones[pool]);
}

// An answer that is not judged when it comes would be judged by what was true long ago.
absl::Status GiveUpSearch(Pass& pass) {
  DropSearch(pass, false);
  return absl::OkStatus();
}

// The plan in force costs more than the job allows, at the prices of today. Its cost until the end depends on what is
// measured, which varies, so a budget is exceeded only by more than kGoalTolerance.
bool BreaksMoney(const Pass& pass, const TrainingJob& job, const UsablePools& pools) {
  const Objective& goal = job.objective;
  const double usd_per_hour = pass.memory.stored_plan.record->UsdPerHour(pools.paid);
  if (goal.max_usd_per_hour > 0 && usd_per_hour > goal.max_usd_per_hour * (1 + 1e-9)) return true;
  const double throughput = pass.observed->throughput;
  if (goal.budget_usd <= 0 || throughput <= 0) return false;
  const auto& cost = pass.memory.status.current.cost;
  const auto left = static_cast<double>(pass.observed->samples_total - pass.observed->samples_done);
  const double expected = (cost ? cost->spent_usd : 0) + left / throughput / 3600 * usd_per_hour;
  return expected * kGoalTolerance > goal.budget_usd;
}

// True when a pool that the plan trains on has lost its profile: it is measured again before another plan is compared.
bool LacksProfile(Pass& pass, const UsablePools& usable, const UsablePools& profiled) {
  const auto& slots = pass.memory.stored_plan.record->slots;
  const bool lacks = std::any_of(slots.begin(), slots.end(), [&](const MemberSlot& slot) {
    const bool trains = slot.role == Role::kTrainer;
    return trains && usable.Find(slot.pool) != nullptr && profiled.Find(slot.pool) == nullptr;
  });
  if (lacks) {
    PublishUnplanned(pass, {ConditionStatus::kFalse, Reason::kProfiling,
                            "A pool of the plan has lost its profile. The job keeps its plan until the layers are "
                            "measured there again, which needs a free unit of the pool."});
  }
  return lacks;
}

}  // namespace

bool IsBelowGoal(const Pass& pass, const TrainingJob& job) {
  return pass.observed->throughput < job.objective.min_throughput * kGoalTolerance;
}

bool IsSettled(const Pass& pass, const TrainingJob& job) {
  const Conditions& conditions = pass.report.conditions;
  return pass.memory.stored_plan.record && IsInForce(pass) && pass.observed->phase == JobPhase::kTraining &&
         conditions.IsTrue(kPodsReadyCondition) && conditions.IsTrue(kPlannedCondition) && !IsBelowGoal(pass, job);
}

void PublishReplan(Pass& pass, const char* event_reason, const std::string& message) {
  if (pass.memory.replanning.last_event == message) return;
  pass.Own(&Memory::replanning).last_event = message;
  pass.Event(event_reason, message);
}

void KeepUnmetPlan(Pass& pass, const std::string& message) {
  PublishReplan(pass, "ReplanInfeasible", message);
  pass.Own(&Memory::replanning).unmet = message;
  SetPlanned(pass);
}

void NoteMetGoal(Pass& pass) { pass.Own(&Memory::replanning).unmet.clear(); }

void PublishUnplanned(Pass& pass, const Unplanned& why) {
  if (why.status != ConditionStatus::kFalse || pass.memory.replanning.last_event == why.message) return;
  pass.Own(&Memory::replanning).last_event = why.message;
  pass.Warning(why.reason, why.message);
}

absl::Status Replan(Pass& pass, const TrainingJob& job) {
  if (pass.coordinator.empty() || pass.observed == nullptr) return absl::OkStatus();
  DropStaleSearch(pass);
  MEDLEY_ASSIGN_OR_RETURN(const bool moved, EvacuateNodes(pass, job));
  if (moved) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const std::string stuck, StuckPool(pass));
  const bool refused = IsRefused(pass);  // and there is no plan to go back to
  const bool must_move = !stuck.empty() || refused;
  if (!job.elasticity.enabled && !must_move) return GiveUpSearch(pass);
  const bool pauses = pass.Lasts(pass.memory.planning.after_refusal);
  if (pauses) MEDLEY_RETURN_IF_ERROR(GiveUpSearch(pass));
  if (pauses && !pass.memory.consider.refused) return absl::OkStatus();
  // While a switch is under way there is nothing to compare with, unless it cannot come about.
  const bool stable =
      IsInForce(pass) && pass.observed->phase == JobPhase::kTraining && pass.observed->samples_total > 0;
  if (!stable && !must_move) return GiveUpSearch(pass);
  if (pass.memory.search.pending) return ContinueSearch(pass, job);
  if (WaitsForSpot(pass)) return absl::OkStatus();
  if (IsInForce(pass)) {
    ForgetAvoidedZones(pass);
    ForgetReleases(pass);
  }
  MEDLEY_ASSIGN_OR_RETURN(const PoolChoice choice, FindUsablePools(pass, job));
  if (choice.refusal) {
    PublishUnplanned(pass, *choice.refusal);
    return absl::OkStatus();
  }
  NoteSpotUnits(pass, job, choice.pools);
  MEDLEY_ASSIGN_OR_RETURN(ProfiledPools profiled, FindProfiledPools(pass, job, choice.pools));
  if (!profiled.profile) return absl::OkStatus();
  if (!must_move && LacksProfile(pass, choice.pools, profiled.pools)) return absl::OkStatus();
  UsablePools& pools = profiled.pools;
  const PlanningInputs seen = InputsOf(job, pools);
  if (pauses) {
    if (!MayBePossibleNow(*pass.memory.consider.refused, seen)) return absl::OkStatus();
    EndPauseAfterRefusal(pass);
  }
  PlanningInputs now = seen;
  bool forced = false;
  std::optional<Reason> reason;
  if (job.elasticity.enabled) reason = ReplanReason(pass, job, pools, now, &forced);
  if (!reason && !stuck.empty()) {
    reason = Reason::kMemberUnschedulable;
    forced = true;
    MEDLEY_ASSIGN_OR_RETURN(const bool elsewhere, LeaveZone(pass, job, stuck, pools));
    if (!elsewhere) {
      OfferOnlyScheduled(pass, stuck, pools);
      now.units = pools.Units();
    }
  }
  if (!reason && refused) {
    reason = Reason::kPlanRefused;
    forced = true;
  }
  if (!reason && MissesGoalForLong(pass, job)) {
    reason = Reason::kThroughputBelowGoal;
    forced = true;
  }
  if (!reason && job.elasticity.enabled && DiffersFromPromise(pass)) reason = Reason::kPredictionCorrected;
  if (!reason) return absl::OkStatus();
  if (reason == Reason::kPriceChanged) forced = forced || BreaksMoney(pass, job, pools);
  if (reason == Reason::kObjectiveChanged) {
    forced = forced || IsBelowGoal(pass, job) || BreaksMoney(pass, job, pools);
    pass.Own(&Memory::replanning).last_event.clear();  // an edit gets an Event, also if it repeats the one before
  }
  return Consider(pass, job, {*reason, forced, now, seen}, profiled);
}

}  // namespace medley::ops::lifecycle
