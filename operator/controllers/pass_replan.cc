// Planning again: what asks for it, what it would save, and the decision, told either way.
#include <algorithm>

#include "common/base/status.h"
#include "common/model/job_spec.h"
#include "operator/controllers/job_pass.h"
#include "operator/planning/replan_decision.h"

namespace medley::ops {
namespace {

// Below this share of the goal a job counts as missing it; measurements are never exact.
constexpr double kGoalTolerance = 0.95;

// The profile as it is: the service corrects none that says it was calibrated.
model::Profile Uncorrected(model::Profile profile) {
  for (model::Layer& layer : profile.model.layers) {
    for (model::LayerProfile& p : layer.profiles) p.origin = "calibrated";
  }
  return profile;
}

// True when a price is not as it was. One that is absent now is none to consider.
bool HasNewPrice(const std::map<std::string, double>& before, const std::map<std::string, double>& now) {
  return std::any_of(now.begin(), now.end(), [&](const auto& price) {
    const auto known = before.find(price.first);
    return known == before.end() || known->second != price.second;
  });
}

}  // namespace

double SecondsSince(const std::string& time, base::WallTime now) {
  const auto parsed = base::ParseTime(time);
  return parsed.ok() ? std::max(0.0, base::ToSeconds(now - *parsed)) : 0;
}

PlanningInputs JobPass::InputsOf(const Pools& pools) const {
  PlanningInputs inputs;
  inputs.prices = pools.prices;
  inputs.cheaper = pools.cheaper;
  for (const PoolOffer& offer : pools.offers) inputs.units[offer.pool->name] = offer.units;
  const kube::Json& spec = job_->spec;
  kube::Json policy = kube::Json::object();
  for (const char* part : {"objective", "elasticity", "planner", "resources"}) {
    if (spec.contains(part)) policy[part] = spec[part];
  }
  inputs.policy = policy.dump();
  return inputs;
}

JobProgress JobPass::Progress() const {
  JobProgress progress;
  progress.elapsed_seconds = SecondsSince(status_.start_time, now_);
  if (observed_ == nullptr) return progress;
  progress.remaining_samples =
      static_cast<double>(std::max<int64_t>(0, observed_->samples_total - observed_->samples_done));
  progress.spent_usd = observed_->usd_spent;
  return progress;
}

bool JobPass::BelowGoal() const { return observed_->throughput < job_->objective.min_throughput * kGoalTolerance; }

bool JobPass::Settled() const {
  return record_ && InForce() && observed_->phase == JobPhase::kTraining &&
         status_.conditions.IsTrue(kPodsReadyCondition) && status_.conditions.IsTrue(kPlannedCondition) && !BelowGoal();
}

bool JobPass::GoalMissedForLong() {
  if (observed_->throughput <= 0 || !BelowGoal()) {
    memory_.below_goal_since.reset();
    return false;
  }
  if (!memory_.below_goal_since) memory_.below_goal_since = steady_;
  const base::nanoseconds missed = steady_ - *memory_.below_goal_since;
  if (missed >= deps_.options.goal_window) return true;
  Again(deps_.options.goal_window - missed);
  return false;
}

bool JobPass::MemberUnschedulableForLong(std::string* pool) {
  std::map<std::string, base::SteadyTime> since;
  bool found = false;
  for (const MemberSlot& slot : record_->slots) {
    const kube::ObjectPtr pod = Pod(slot.member);
    bool unschedulable = false;
    if (pod == nullptr) unschedulable = memory_.refused.contains(slot.member);
    if (pod != nullptr && !pod->deleting()) {
      for (const kube::Json& condition : pod->At("/status/conditions")) {
        unschedulable = unschedulable ||
                        (condition.value("type", "") == "PodScheduled" && condition.value("status", "") == "False" &&
                         condition.value("reason", "") == "Unschedulable");
      }
    }
    if (!unschedulable) continue;
    const std::string id = pod == nullptr ? slot.member : pod->uid();
    const auto before = memory_.unschedulable_since.find(id);
    since[id] = before == memory_.unschedulable_since.end() ? steady_ : before->second;
    const base::nanoseconds waited = steady_ - since[id];
    if (waited >= deps_.options.schedule_window) {
      *pool = slot.pool;
      found = true;
    } else {
      Again(deps_.options.schedule_window - waited);
    }
  }
  memory_.unschedulable_since = std::move(since);
  return found;
}

std::string JobPass::ReplanReason(const Pools& pools, const PlanningInputs& now, bool* forced) {
  for (const MemberSlot& slot : record_->slots) {
    if (now.prices.contains(slot.pool)) continue;
    *forced = true;
    return "PoolGone";
  }
  if (std::string reason = CapacityReason(pools, now, forced); !reason.empty()) return reason;
  const int trainers = record_->Trainers();
  if (trainers > job_->elasticity.max_units) {
    *forced = true;
    return "MaxUnitsLowered";
  }
  if (!memory_.considered) {
    // An operator that starts anew: what changed while nobody looked?
    if (record_->spec_generation != object_.generation()) return "ObjectiveChanged";
    for (const auto& [pool, price] : now.prices) {
      const auto planned = record_->usd_per_unit_hour.find(pool);
      if (planned == record_->usd_per_unit_hour.end() || planned->second != price) return "PriceChanged";
    }
    if (!now.cheaper.empty() && job_->elasticity.on_price_change) return "PriceChanged";
    memory_.considered = now;
    return "";
  }
  const PlanningInputs& before = *memory_.considered;
  if (before.policy != now.policy) return "ObjectiveChanged";
  const bool priced_anew = before.prices != now.prices || HasNewPrice(before.cheaper, now.cheaper);
  if (priced_anew && job_->elasticity.on_price_change) return "PriceChanged";
  return "";
}

absl::Status JobPass::Replan() {
  if (link_ == nullptr || observed_ == nullptr) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const bool left, LeaveNodes());
  if (left || !job_->elasticity.enabled) return absl::OkStatus();
  std::string stuck_pool;
  const bool stuck = MemberUnschedulableForLong(&stuck_pool);
  // While a switch is under way there is nothing to compare with, unless it cannot come about.
  const bool stable = InForce() && observed_->phase == JobPhase::kTraining && observed_->samples_total > 0;
  if (!stable && !stuck) return absl::OkStatus();
  if (InForce()) memory_.avoided_zones.clear();
  std::optional<Pools> pools = UsablePools();
  if (!pools) {
    // The plan in force stays; its condition must not say otherwise.
    SetCondition(kPlannedCondition, ConditionStatus::kTrue, "PlanFound",
                 model::Summary(record_->plan, record_->layer_names));
    return absl::OkStatus();
  }
  const PlanningInputs now = InputsOf(*pools);
  bool forced = false;
  std::string reason = ReplanReason(*pools, now, &forced);
  if (reason.empty() && stuck) {
    reason = "MemberUnschedulable";
    forced = true;
    const std::string zone = record_->Zones()[stuck_pool];
    bool elsewhere = false;
    if (!zone.empty()) {
      memory_.avoided_zones[stuck_pool].insert(zone);
      if (std::optional<Pools> others = UsablePools()) pools = std::move(others);
      elsewhere = pools->zones[stuck_pool] != zone;
    }
    for (PoolOffer& offer : pools->offers) {
      if (offer.pool->name != stuck_pool || elsewhere) continue;
      int scheduled = 0;
      for (const kube::ObjectPtr& pod : Pods()) {
        scheduled += pod->label("medley.dev/pool") == stuck_pool && !pod->String("/spec/nodeName").empty() ? 1 : 0;
      }
      offer.units = std::min(offer.units, scheduled);
    }
  }
  if (reason.empty() && GoalMissedForLong()) {
    memory_.below_goal_since.reset();
    reason = "ThroughputBelowGoal";
    forced = true;
  }
  if (reason == "ObjectiveChanged") {
    forced =
        forced || BelowGoal() ||
        (job_->objective.max_usd_per_hour > 0 && record_->UsdPerHour(pools->paid) > job_->objective.max_usd_per_hour);
  }
  // An edit gets an answer, also where it is that of the edit before.
  if (reason == "ObjectiveChanged") memory_.last_event.clear();
  return reason.empty() ? absl::OkStatus() : Consider(reason, forced, *pools, now);
}

std::optional<JobPass::Pools> JobPass::PoolsInOtherZones(const Pools& pools) {
  for (const auto& [pool, zone] : pools.zones) {
    if (!zone.empty()) memory_.avoided_zones[pool].insert(zone);
  }
  std::optional<Pools> others = UsablePools();
  if (!others) return std::nullopt;
  const bool untried = std::any_of(others->zones.begin(), others->zones.end(), [&](const auto& item) {
    return !item.second.empty() && !memory_.avoided_zones[item.first].contains(item.second);
  });
  if (!untried) memory_.avoided_zones.clear();  // all were tried: from the beginning next time
  return untried ? std::move(others) : std::nullopt;
}

absl::Status JobPass::ConsiderCheaperZones(const std::string& reason, bool forced, const PlanningInputs& inputs) {
  const std::optional<Pools> pools = UsablePools(/*keep_zones=*/false);
  return pools ? Consider(reason, forced, *pools, inputs) : absl::OkStatus();
}

absl::Status JobPass::Consider(const std::string& reason, bool forced, const Pools& pools,
                               const PlanningInputs& planning_inputs) {
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<model::Profile> profile, Profiles(pools));
  // A pool that is new here is measured first; the plan in force stays meanwhile.
  SetCondition(kPlannedCondition, ConditionStatus::kTrue, "PlanFound",
               model::Summary(record_->plan, record_->layer_names));
  if (!profile) memory_.growth_asked_at.reset();  // asked when it is measured
  if (!profile || status_.finished()) return absl::OkStatus();
  JobProgress progress = Progress();
  const double estimated = record_->plan.estimate.throughput;
  if (reason == "ThroughputBelowGoal" && estimated > 0) progress.calibration = observed_->throughput / estimated;
  std::optional<model::PlanResult> result = Ask(pools, *profile, progress);
  double present = result ? PresentEstimate(estimated, observed_->throughput, result->prediction) : 0;
  if (result && !result->plan && IsCorrected(result->prediction)) {
    // Nothing reaches the goal as it was measured. What the profiles promise may still be better than to stay, and
    // is what was planned with before there were measurements.
    const double ratio = result->prediction->ratio_uncorrected;
    std::optional<model::PlanResult> promised = Ask(pools, Uncorrected(*profile), progress);
    if (promised && promised->plan) {
      result = std::move(promised);
      present = ratio > 0 ? observed_->throughput / ratio : estimated;
    }
  }
  if (!result) return absl::OkStatus();  // away: asked again later, `considered` is unchanged
  memory_.considered = planning_inputs;
  if (!result->plan || !result->execution_plan) {
    if (const auto others = PoolsInOtherZones(pools)) return Consider(reason, forced, *others, planning_inputs);
    if (reason == "CapacityLowered") memory_.over_refused = memory_.considered->units;
    ExplainInfeasible(result->reasons, pools);
    return absl::OkStatus();
  }
  MoveInputs inputs;
  inputs.remaining_samples = observed_->samples_total > 0
                                 ? progress.remaining_samples
                                 : static_cast<double>(profile->samples_per_epoch) * job_->epochs;
  inputs.current_usd_per_hour = record_->UsdPerHour(pools.paid);
  inputs.current_throughput = observed_->throughput;
  inputs.current_estimated_throughput = present;
  inputs.candidate_usd_per_hour = result->plan->cost_per_hour;
  inputs.candidate_estimated_throughput =
      result->plan->throughput / (progress.calibration > 0 ? progress.calibration : 1);
  inputs.same_plan = SameShape(record_->plan, *result->execution_plan) && SameZones(record_->slots, pools.zones);
  inputs.pause_seconds =
      status_.last_rescale ? status_.last_rescale->pause_seconds : deps_.options.default_pause_seconds;
  inputs.warm_up_seconds = deps_.options.default_warm_up_seconds;
  inputs.min_saving = job_->elasticity.min_saving;
  inputs.cooldown_seconds = job_->elasticity.cooldown_seconds;
  inputs.seconds_since_last_move =
      record_->reason == "FirstPlan" || record_->reason == "Resumed" ? 1e9 : SecondsSince(record_->accepted_at, now_);
  inputs.forced = forced;
  const MoveDecision decision = DecideMove(inputs);
  deps_.metrics.CountReplan(decision.reason);
  TellReplan("ReplanConsidered", fmt::format("{}: {} ({}): {}", reason, decision.move ? "move" : "stay",
                                             decision.reason, decision.sentence));
  if (decision.reason == "Cooldown") {  // asked again when it is over
    memory_.considered.reset();
    Again(base::FromSeconds(inputs.cooldown_seconds - inputs.seconds_since_last_move));
  }
  if (!decision.move) {
    // Not worth a move in the zones that the job keeps: perhaps in the cheapest ones.
    return pools.cheaper.empty() ? absl::OkStatus() : ConsiderCheaperZones(reason, forced, planning_inputs);
  }
  const int64_t from = record_->plan.generation;
  MEDLEY_RETURN_IF_ERROR(Accept(*result, pools, *profile, reason));
  memory_.considered->cheaper.clear();  // cheaper zones are considered once this plan is in force
  SetCondition(
      kRescalingCondition, ConditionStatus::kTrue, reason,
      fmt::format("from generation {} to generation {}: {}", from, record_->plan.generation, decision.sentence));
  Again(base::nanoseconds(1));  // the next pass makes the pods
  return absl::OkStatus();
}

void JobPass::TellReplan(const char* event_reason, const std::string& sentence) {
  if (memory_.last_event == sentence) return;
  memory_.last_event = sentence;
  Event(EventRecorder::Type::kNormal, event_reason, sentence);
}

}  // namespace medley::ops
