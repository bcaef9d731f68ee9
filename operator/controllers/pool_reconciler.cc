#include "operator/controllers/pool_reconciler.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "common/base/figure.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/resources.h"
#include "operator/api/validate.h"
#include "operator/builders/pods.h"
#include "operator/capacity/pod_demand.h"
#include "operator/controllers/job_units.h"

namespace medley::ops {
namespace {

// Less than kMostHoursBetweenLooks, so that the hours of units count.
constexpr base::nanoseconds kBetweenLooks = std::chrono::hours(1);

PodDemand UnitOf(const ResourcePool& pool) {
  kube::Object pod;
  pod.mutable_json()["spec"] = UnitPodSpec(pool);
  return DemandOf(pod);
}

std::optional<base::nanoseconds> Sooner(std::optional<base::nanoseconds> a, std::optional<base::nanoseconds> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

}  // namespace

absl::StatusOr<Result> PoolReconciler::Reconcile(const kube::Key& key) {
  const kube::ObjectPtr object = deps_.stores.pools.Get(key);
  if (object == nullptr || object->deleting()) {
    deps_.metrics.RemovePool(key.name);
    deps_.outages.Forget(key.name);
    losses_.Forget(key.name);
    return Result{};
  }
  Result result;
  PoolStatus status = PoolStatus::FromJson(object->At("/status"));
  const PoolStatus before = status;
  status.observed_generation = object->generation();
  const auto pool = ResourcePool::FromObject(*object);
  const std::vector<std::string> broken =
      pool.ok() ? ValidateResourcePool(*object) : std::vector{base::Message(pool.status())};
  if (!broken.empty()) {
    status.conditions.Set(kAvailableCondition, ConditionStatus::kFalse, Reason::kInvalidSpec, broken.front(),
                          object->generation(), deps_.clock.Now());
    status.conditions.Set(kPricedCondition, ConditionStatus::kUnknown, Reason::kInvalidSpec, broken.front(),
                          object->generation(), deps_.clock.Now());
  } else {
    Price(*pool, status);
    Units(*pool, status);
    CheckOwner(*pool);
    result.requeue_after = Sooner(Outages(*pool, status), Lifetimes(*pool, status));
    Available(*pool, status);
    Profiles(*pool, status);
    const PoolUnits& units = status.units;
    deps_.metrics.SetPool(pool->name, {status.usd_per_unit_hour, units.limit, units.capacity, units.used, units.free});
  }
  if (status == before) return result;
  kube::Json patch = status.ToJson();
  const kube::Json present = before.ToJson();
  for (const auto& [field, value] : present.items()) {
    if (!patch.contains(field)) patch[field] = nullptr;  // a merge patch removes what it sets to null
  }
  const auto written =
      deps_.client.Patch(ResourcePools(), key, kube::PatchType::kMerge, {{"status", patch}}, {}, "status");
  if (!written.ok() && !kube::IsNotFound(written.status())) {
    return base::Annotate(written.status(), "write the status of pool " + key.name);
  }
  return result;
}

void PoolReconciler::Price(const ResourcePool& pool, PoolStatus& status) const {
  const auto catalog = deps_.scheduler.catalog();
  const auto price = PriceOf(pool, catalog.get(), deps_.capacity.ZonesOf(pool, UnitOf(pool)));
  const int64_t generation = pool.object.generation();
  const base::WallTime now = deps_.clock.Now();
  if (price) {
    if (price->available) {
      status.unavailable_since.clear();
    } else if (status.unavailable_since.empty()) {
      status.unavailable_since = base::FormatTime(now);
    }
    status.zone = price->available ? price->zone : "";
    status.usd_per_unit_hour = price->usd_per_unit_hour;
    status.price_time = price->price_time;
    status.price_source = price->source;
    status.conditions.Set(
        kPricedCondition, ConditionStatus::kTrue, price->source == "spec" ? Reason::kFixedPrice : Reason::kCatalogPrice,
        fmt::format("A unit {} {} USD per hour{}.", price->available ? "costs" : "last cost",
                    base::Figure(price->usd_per_unit_hour), price->zone.empty() ? "" : " in zone " + price->zone),
        generation, now);
    return;
  }
  if (catalog == nullptr) {
    status.conditions.Set(kPricedCondition, ConditionStatus::kUnknown, Reason::kSchedulerUnavailable,
                          "the scheduling service does not answer", generation, now);
    return;
  }
  status.usd_per_unit_hour = 0;
  status.zone.clear();
  status.unavailable_since.clear();
  status.conditions.Set(kPricedCondition, ConditionStatus::kFalse, Reason::kNotInCatalog,
                        "The pool has no price: " + WhyUnpriced(pool, *catalog) + ".", generation, now);
}

void PoolReconciler::Profiles(const ResourcePool& pool, PoolStatus& status) const {
  using Stage = ProfileProgress::Stage;
  if (deps_.profiles.Expects(pool.name)) return;  // what the last leader wrote stays until more is known
  const std::vector<ProfileProgress> open = deps_.profiles.OfPool(pool.name);
  const auto worst =
      std::max_element(open.begin(), open.end(), [](const auto& a, const auto& b) { return a.stage < b.stage; });
  const bool failed = worst != open.end() && (worst->stage == Stage::kFailed || worst->stage == Stage::kRefused);
  const ConditionStatus profiled = open.empty() ? ConditionStatus::kTrue
                                   : failed     ? ConditionStatus::kFalse
                                                : ConditionStatus::kUnknown;
  status.conditions.Set(kProfiledCondition, profiled, open.empty() ? Reason::kMeasured : worst->reason,
                        open.empty() ? "No job waits for a measurement on this pool." : worst->public_message,
                        pool.object.generation(), deps_.clock.Now());
}

void PoolReconciler::Units(const ResourcePool& pool, PoolStatus& status) const {
  status.units = deps_.capacity.UnitsOf(pool, UnitOf(pool));
}

void PoolReconciler::CheckOwner(const ResourcePool& pool) {
  if (deps_.ns.empty()) return;
  std::set<std::string> others = deps_.capacity.NamespacesOn(pool.name);
  others.erase(deps_.ns);
  base::MutexLock lock(mutex_);
  if (others.empty()) {
    shared_.erase(pool.name);
    return;
  }
  if (!shared_.insert(pool.name).second) return;
  base::log::Warn(
      "a pool is used by jobs of another operator, so its limit may be exceeded for a moment, and both write its "
      "status: "
      "give each operator its own pools by spec.namespaces",
      {{"pool", pool.name}, {"namespace", deps_.ns}, {"others", fmt::format("{}", fmt::join(others, ","))}});
}

std::optional<base::nanoseconds> PoolReconciler::Outages(const ResourcePool& pool, PoolStatus& status) const {
  status.outages.clear();
  if (pool.scaling != PoolScaling::kAutoscaled) return std::nullopt;
  if (deps_.outages.Of(pool.object).empty()) return std::nullopt;
  deps_.outages.See(pool.object, PlacedPods(deps_, pool.name));
  status.outages = deps_.outages.Of(pool.object);
  std::optional<base::nanoseconds> next;
  const base::WallTime now = deps_.clock.Now();
  for (const PoolOutage& outage : status.outages) {
    if (outage.until <= now) continue;
    const base::nanoseconds left = outage.until - now;
    next = next ? std::min(*next, left) : left;
  }
  return next;
}

std::optional<base::nanoseconds> PoolReconciler::Lifetimes(const ResourcePool& pool, PoolStatus& status) {
  if (!pool.IsSpot()) {
    status.lifetimes = PoolLifetimes();
    losses_.Forget(pool.name);
    return std::nullopt;
  }
  const std::vector<UnitLosses::Unit> units = UnitsWithNodes(deps_, pool.name);
  const PoolLifetimes now = losses_.See(pool.object, units, deps_.clock.Now());
  if (now.DiffersFrom(status.lifetimes)) status.lifetimes = now;
  return units.empty() ? std::nullopt : std::optional(kBetweenLooks);
}

void PoolReconciler::Available(const ResourcePool& pool, PoolStatus& status) const {
  const int64_t generation = pool.object.generation();
  if (!status.unavailable_since.empty()) {
    status.units.free = 0;
    status.conditions.Set(kAvailableCondition, ConditionStatus::kFalse, Reason::kOfferingUnavailable,
                          fmt::format("The price catalog has had no available offering of the pool since {}. The last "
                                      "price counts, and jobs get no more units than they hold.",
                                      status.unavailable_since),
                          generation, deps_.clock.Now());
    return;
  }
  const base::WallTime now = deps_.clock.Now();
  const auto outage = std::find_if(status.outages.begin(), status.outages.end(), [&](const PoolOutage& each) {
    return FindActive({each}, generation, each.zone, now) != nullptr;
  });
  if (outage != status.outages.end()) {
    if (outage->zone.empty()) status.units.free = 0;
    status.conditions.Set(kAvailableCondition, ConditionStatus::kFalse, Reason::kProvisioningFailed,
                          fmt::format("The pool is {}. Jobs plan no new units of it until then, or until one of its "
                                      "pods gets a node.",
                                      InWords(*outage)),
                          generation, now);
    return;
  }
  const bool has_units = pool.scaling == PoolScaling::kAutoscaled ? pool.limit > 0 : status.units.capacity > 0;
  status.conditions.Set(kAvailableCondition, has_units ? ConditionStatus::kTrue : ConditionStatus::kFalse,
                        has_units ? Reason::kUnitsExist : Reason::kNoNodes,
                        has_units ? "nodes hold units of the pool, or an autoscaler brings them"
                                  : "no node that is ready, stays, and matches spec.nodeSelector and "
                                    "spec.tolerations holds a unit",
                        generation, deps_.clock.Now());
}

}  // namespace medley::ops
