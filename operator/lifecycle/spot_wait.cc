#include "operator/lifecycle/spot_wait.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>

#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/pod_state.h"
#include "operator/records/interruptions.h"
#include "operator/spot/decide.h"

namespace medley::ops::lifecycle {
namespace {

constexpr double kHour = 3600;
constexpr double kNotSold = std::numeric_limits<double>::infinity();
constexpr base::nanoseconds kShortestWait = std::chrono::minutes(1);
constexpr base::nanoseconds kLongestWait = std::chrono::minutes(10);

double HourOf(const Pass& pass) { return base::ToSeconds(pass.world.steady.time_since_epoch()) / kHour; }

bool IsSpot(const UsablePools& pools, const std::string& name) {
  const PoolView* view = pools.Find(name);
  return view != nullptr && view->pool.IsSpot();
}

std::set<std::string> SpotPools(const UsablePools& pools, const std::set<std::string>& names) {
  std::set<std::string> spot;
  for (const std::string& name : names) {
    if (IsSpot(pools, name)) spot.insert(name);
  }
  return spot;
}

std::set<std::string> PoolsOfPlan(const Pass& pass) {
  std::set<std::string> names;
  for (const MemberSlot& slot : pass.memory.stored_plan.record->slots) names.insert(slot.pool);
  return names;
}

std::set<std::string> PoolsOf(const model::PlanResult& found) {
  std::set<std::string> names;
  for (const model::ProvisionedStage& stage : found.plan->stages) names.insert(stage.resource_type);
  return names;
}

// A plan loses its units when one of its pools does.
spot::ZoneRates RatesTogether(const Pass& pass, const std::set<std::string>& pools) {
  std::vector<spot::ZoneRecord> records;
  for (const std::string& pool : pools) {
    const auto known = pass.memory.spot_wait.records.find(pool);
    records.push_back(known == pass.memory.spot_wait.records.end() ? spot::ZoneRecord() : known->second);
  }
  spot::ZoneRates together{0, std::numeric_limits<double>::max()};
  for (const spot::ZoneRates& rates : spot::RatesOf(records)) {
    together.losses_per_hour += rates.losses_per_hour;
    together.returns_per_hour = std::min(together.returns_per_hour, rates.returns_per_hour);
  }
  return together;
}

double CheckpointSeconds(const TrainingJob& job) {
  const kube::Json::json_pointer place("/checkpoint/interval");
  if (!job.spec.contains(place) || !job.spec.at(place).is_string()) return 0;
  const auto interval = base::ParseDuration(job.spec.at(place).get<std::string>());
  return interval.ok() ? base::ToSeconds(*interval) : 0;
}

// From the decision for other units to their first step. Nodes that an autoscaler brings may take as long as they may.
double StartSeconds(const UsablePools& pools, const std::set<std::string>& names, const MoveInputs& inputs) {
  double longest = 0;
  for (const std::string& name : names) {
    const PoolView* view = pools.Find(name);
    const bool autoscaled = view != nullptr && view->pool.scaling == PoolScaling::kAutoscaled;
    if (autoscaled) longest = std::max(longest, view->pool.provision_timeout_seconds);
  }
  return longest + inputs.warm_up_seconds + inputs.pause_seconds;
}

// What part of the paid USD of these units is expected to be lost.
double LostShareOfAll(const TrainingJob& job, const UsablePools& pools, const std::map<std::string, int>& units,
                      const std::map<std::string, double>& usd) {
  double lost = 0, all = 0;
  for (const auto& [pool, count] : units) {
    const PoolView* view = pools.Find(pool);
    const auto price = usd.find(pool);
    if (view == nullptr || price == usd.end()) continue;
    all += count * price->second;
    lost += count * price->second * LostShareOf(job, view->pool) * (job.program ? count : 1);
  }
  return all > 0 ? lost / all : 0;
}

// For a job without a deadline each unit is lost by itself, as the pools' own records say. One loss an hour of a second
// costs 1 / 3600.
void AddLostShares(const Pass& pass, const TrainingJob& job, const UsablePools& pools, const model::PlanResult& found,
                   MoveInputs& inputs) {
  std::map<std::string, int> present, next;
  for (const MemberSlot& slot : pass.memory.stored_plan.record->slots) ++present[slot.pool];
  for (const model::ProvisionedStage& stage : found.plan->stages) next[stage.resource_type] += stage.units;
  inputs.seconds_per_loss = 1;
  inputs.current_losses_per_hour = kHour * LostShareOfAll(job, pools, present, pools.paid);
  inputs.candidate_losses_per_hour = kHour * LostShareOfAll(job, pools, next, pools.prices);
}

struct Comparison {
  spot::TableQuestion question;
  spot::SpotState state;
};

// Place 0 is the plan in force, place 1 the one that was found.
std::optional<Comparison> Compare(const TrainingJob& job, const PlanSearch& search, const model::PlanResult& found,
                                  const MoveInputs& inputs) {
  const double present =
      inputs.current_throughput > 0 ? inputs.current_throughput : inputs.current_estimated_throughput;
  if (!(present > 0) || !(inputs.remaining_samples > 0) || !(inputs.candidate_estimated_throughput > 0)) {
    return std::nullopt;
  }
  const bool measured = inputs.current_throughput > 0 && inputs.current_estimated_throughput > 0;
  const double calibration = measured ? inputs.current_throughput / inputs.current_estimated_throughput : 1;
  Comparison out;
  spot::TableQuestion& question = out.question;
  question.work_hours = inputs.remaining_samples / present / kHour;
  question.start_hours = StartSeconds(search.offered->pools, PoolsOf(found), inputs) / kHour;
  question.zones.resize(2);
  question.zones[1].speed = inputs.candidate_estimated_throughput * calibration / present;
  for (spot::ZoneOffer& zone : question.zones) {
    zone.egress_usd = {0, 0};
    zone.spot_usd_per_hour = zone.on_demand_usd_per_hour = kNotSold;
    zone.rates = {1, 1};
  }
  out.state.zone = 0;
  out.state.work_hours = question.work_hours;
  out.state.hours_to_deadline = (job.objective.deadline_seconds - search.progress.elapsed_seconds) / kHour;
  out.state.work_at_risk_hours = CheckpointSeconds(job) / kHour;
  out.state.min_saving = inputs.min_saving;
  return out;
}

// Looks again after a tenth of the spare time.
base::nanoseconds WaitOf(const Comparison& comparison, double on_demand_speed) {
  const double spare = spot::SpareHours(comparison.state, comparison.question.start_hours, on_demand_speed);
  const base::nanoseconds tenth = base::FromSeconds(std::max(0.0, spare) * kHour / 10);
  return std::clamp(tenth, kShortestWait, kLongestWait);
}

}  // namespace

void NoteSpotUnits(Pass& pass, const TrainingJob& job, const UsablePools& pools) {
  if (job.objective.deadline_seconds <= 0) return;
  std::map<std::string, bool> up;
  for (const MemberSlot& slot : pass.memory.stored_plan.record->slots) {
    if (!IsSpot(pools, slot.pool)) continue;
    const kube::ObjectPtr pod = pass.Pod(slot.member);
    const bool runs =
        pod != nullptr && !pod->deleting() && !pod->String("/spec/nodeName").empty() && !WorkerHasEnded(*pod);
    const bool starts = pod != nullptr && !runs && !IsUnschedulable(*pod);
    if (starts) continue;  // whether it finds a node is not known
    const auto [at, fresh] = up.emplace(slot.pool, runs);
    if (!fresh) at->second = at->second && runs;
  }
  auto& records = pass.Own(&Memory::spot_wait).records;
  for (const auto& [pool, runs] : up) spot::NoteSighting(records[pool], HourOf(pass), runs);
}

bool WaitsForSpot(Pass& pass) { return pass.Lasts(pass.memory.spot_wait.wait); }

void AddSpotRisk(const Pass& pass, const TrainingJob& job, const PlanSearch& search, const model::PlanResult& found,
                 MoveInputs& inputs) {
  if (!found.plan) return;
  const UsablePools& pools = search.offered->pools;
  if (job.objective.deadline_seconds <= 0) {
    AddLostShares(pass, job, pools, found, inputs);
    return;
  }
  const auto losses = [&](const std::set<std::string>& names) {
    const std::set<std::string> spot = SpotPools(pools, names);
    return spot.empty() ? 0 : RatesTogether(pass, spot).losses_per_hour;
  };
  inputs.current_losses_per_hour = losses(PoolsOfPlan(pass));
  inputs.candidate_losses_per_hour = losses(PoolsOf(found));
  // On average a loss comes in the middle between two checkpoints.
  inputs.seconds_per_loss = inputs.warm_up_seconds + inputs.pause_seconds + CheckpointSeconds(job) / 2;
}

std::optional<SpotAdvice> AdviseAgainstMove(Pass& pass, const TrainingJob& job, const PlanSearch& search,
                                            const model::PlanResult& found, const MoveInputs& inputs) {
  pass.Own(&Memory::spot_wait).wait = Pause();
  if (job.objective.deadline_seconds <= 0 || !found.plan || pass.observed->samples_total <= 0) return std::nullopt;
  const UsablePools& pools = search.offered->pools;
  const std::set<std::string> present_spot = SpotPools(pools, PoolsOfPlan(pass));
  const bool finds_spot = !SpotPools(pools, PoolsOf(found)).empty();
  std::optional<Comparison> comparison = Compare(job, search, found, inputs);
  if (!comparison) return std::nullopt;
  spot::TableQuestion& question = comparison->question;
  const bool lost = search.reason == Reason::kMemberUnschedulable || search.reason == Reason::kCapacityLowered ||
                    search.reason == Reason::kPoolUnusable || search.reason == Reason::kSpotNotice;
  if (search.forced && lost && !present_spot.empty() && !finds_spot) {
    question.zones[0].spot_usd_per_hour = inputs.current_usd_per_hour;
    question.zones[0].rates = RatesTogether(pass, present_spot);
    question.zones[1].on_demand_usd_per_hour = inputs.candidate_usd_per_hour;
  } else if (!search.forced && present_spot.empty() && finds_spot) {
    question.zones[0].on_demand_usd_per_hour = inputs.current_usd_per_hour;
    question.zones[1].spot_usd_per_hour = inputs.candidate_usd_per_hour;
    question.zones[1].rates = RatesTogether(pass, SpotPools(pools, PoolsOf(found)));
    comparison->state.runs = spot::SpotState::Runs::kOnDemand;
  } else {
    return std::nullopt;
  }
  const double speed = std::isfinite(question.zones[1].on_demand_usd_per_hour) ? question.zones[1].speed : 1;
  question.spare_hours = std::max(0.0, spot::SpareHours(comparison->state, question.start_hours, speed));
  const base::nanoseconds wait = WaitOf(*comparison, speed);
  comparison->state.hours_to_next_look = base::ToSeconds(wait) / kHour;
  const spot::CostTable table(question);
  const bool on_demand = comparison->state.runs == spot::SpotState::Runs::kOnDemand;
  const spot::SpotDecision decision = spot::DecideSpot(table, comparison->state, {0, on_demand ? 1.0 : 0.0});
  const std::string sentence =
      spot::Explain(table, comparison->state, decision, {"the present plan", "the other plan"});
  if (on_demand) {
    const bool too_late = decision.spare_hours < question.start_hours + comparison->state.hours_to_next_look;
    return too_late ? std::optional(SpotAdvice{"NoSpareTime", sentence}) : std::nullopt;
  }
  if (decision.otherwise != spot::SpotDecision::Act::kWait) return std::nullopt;
  pass.Own(&Memory::spot_wait).wait = pass.PauseFor(wait);
  return SpotAdvice{"WaitsForSpot", sentence};
}

}  // namespace medley::ops::lifecycle
