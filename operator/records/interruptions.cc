#include "operator/records/interruptions.h"

#include <algorithm>

#include "common/base/clock.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "operator/api/pool_lifetimes.h"

namespace medley::ops {
namespace {

// From the node of a pod to its first step, and what its arrival costs the others (lifecycle/options.h has the same).
constexpr double kUntilFirstStep = 11;

double SaveIntervalSeconds(const TrainingJob& job) {
  const kube::Json::json_pointer place("/checkpoint/interval");
  if (!job.spec.contains(place) || !job.spec.at(place).is_string()) return 0;
  const auto interval = base::ParseDuration(job.spec.at(place).get<std::string>());
  return interval.ok() ? base::ToSeconds(*interval) : 0;
}

// A loss comes in the middle between two saves, on average. Medley's own models lose no step.
double SecondsOfLoss(const TrainingJob& job, const PoolLifetimes& lifetimes) {
  return lifetimes.start_seconds + kUntilFirstStep + (job.program ? SaveIntervalSeconds(job) / 2 : 0);
}

bool CountsInterruptions(const Objective& goal) {
  return !goal.fastest && !goal.least_usd_per_hour && goal.max_usd_per_hour <= 0;
}

double ShareIn(const LostShares& shares, const std::string& pool) {
  const auto share = shares.find(pool);
  return share == shares.end() ? 0 : share->second;
}

}  // namespace

double LostShareOf(const TrainingJob& job, const ResourcePool& pool) {
  if (!pool.IsSpot()) return 0;
  const PoolLifetimes lifetimes = PoolLifetimes::FromJson(pool.object.At("/status/interruptions"));
  if (lifetimes.updated == base::WallTime()) return 0;
  return LostShare(lifetimes, SecondsOfLoss(job, lifetimes));
}

LostShares LostSharesOf(const TrainingJob& job, const std::vector<PoolOffer>& offers) {
  LostShares shares;
  if (!CountsInterruptions(job.objective)) return shares;
  for (const PoolOffer& offer : offers) {
    if (const double share = LostShareOf(job, *offer.pool); share > 0) shares[offer.pool->name] = share;
  }
  return shares;
}

void AddInterruptions(const TrainingJob& job, const std::vector<PoolOffer>& offers, model::PlanRequest& request) {
  if (job.program) return;
  const LostShares shares = LostSharesOf(job, offers);
  for (model::Resource& resource : request.resources) {
    resource.price_per_unit_hour *= 1 + ShareIn(shares, resource.name);
  }
}

model::PlanResult WithPaidPrices(const TrainingJob& job, const std::vector<PoolOffer>& offers,
                                 const model::PlanRequest& request, model::PlanResult result) {
  const LostShares shares = job.program ? LostShares() : LostSharesOf(job, offers);
  if (shares.empty()) return result;
  const auto expected = [&](const std::string& pool, int units) {
    const auto priced = std::ranges::find(request.resources, pool, &model::Resource::name);
    if (priced == request.resources.end()) return 0.0;
    const double share = ShareIn(shares, pool);
    return units * priced->price_per_unit_hour * share / (1 + share);
  };
  if (result.plan) {
    double usd_per_hour = expected(request.server_type, result.plan->server_units);
    for (const model::ProvisionedStage& stage : result.plan->stages) {
      usd_per_hour += expected(stage.resource_type, stage.units);
    }
    result.plan->cost_per_hour -= usd_per_hour;
    if (result.execution_plan) result.execution_plan->estimate.usd_per_hour -= usd_per_hour;
  }
  for (model::Resource& resource : result.resources) resource.price_per_unit_hour -= expected(resource.name, 1);
  return result;
}

}  // namespace medley::ops
