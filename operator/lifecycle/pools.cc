#include "operator/lifecycle/pools.h"

#include <algorithm>

#include "common/base/status.h"
#include "operator/lifecycle/pass.h"

namespace medley::ops::lifecycle {
namespace {

std::string NameList(const std::vector<PoolView>& pools) {
  std::string list;
  for (const PoolView& view : pools) list += (list.empty() ? "" : ", ") + view.pool.name;
  return list.empty() ? "the cluster has no ResourcePools" : "the cluster has: " + list;
}

std::optional<Unplanned> PriceRefusal(const PoolsView& all, const PoolView& view) {
  if (!all.catalog_revision) {
    return Unplanned(
        ConditionStatus::kUnknown, "SchedulerUnavailable",
        fmt::format("The price of pool '{}' is not known: the scheduling service does not answer.", view.pool.name));
  }
  return Unplanned(
      ConditionStatus::kFalse, "PoolUnpriced",
      fmt::format("spec.resources.pools: ResourcePool '{}' has no price: the catalog (revision {}) does not "
                  "hold its spec.price.offering.",
                  view.pool.name, *all.catalog_revision));
}

std::optional<Unplanned> Select(const PoolsView& all, const TrainingJob& job, UsablePools& usable) {
  const bool named = !job.pools.empty();
  std::vector<std::string> wanted = job.pools;
  if (!named) {
    for (const PoolView& view : all.pools) wanted.push_back(view.pool.name);
  }
  std::optional<Unplanned> unpriced;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto view = std::find_if(all.pools.begin(), all.pools.end(),
                                   [&](const PoolView& candidate) { return candidate.pool.name == wanted[i]; });
    if (view == all.pools.end() || !view->pool.Allows(job.key().ns)) {
      if (!named) continue;
      return Unplanned(
          ConditionStatus::kFalse, "PoolNotFound",
          fmt::format("spec.resources.pools[{}]: there is no usable ResourcePool '{}' for namespace '{}'; {}.", i,
                      wanted[i], job.key().ns, NameList(all.pools)));
    }
    if (!view->usd_per_unit_hour) {
      unpriced = PriceRefusal(all, *view);
      if (named || !all.catalog_revision) return unpriced;
      continue;
    }
    usable.prices[view->pool.name] = *view->usd_per_unit_hour;
    usable.pools.push_back(*view);
  }
  if (usable.pools.empty() && unpriced) return unpriced;
  if (usable.pools.empty()) {
    return Unplanned(ConditionStatus::kFalse, "PoolNotFound",
                     fmt::format("spec.resources.pools: namespace '{}' may not use any ResourcePool; {}.", job.key().ns,
                                 NameList(all.pools)));
  }
  if (!job.server_pool.empty() && usable.Find(job.server_pool) == nullptr) {
    return Unplanned(ConditionStatus::kFalse, "PoolNotFound",
                     fmt::format("spec.resources.serverPool: there is no usable ResourcePool '{}'; {}.",
                                 job.server_pool, NameList(all.pools)));
  }
  return std::nullopt;
}

}  // namespace

const PoolView* UsablePools::Find(std::string_view name) const {
  for (const PoolView& view : pools) {
    if (view.pool.name == name) return &view;
  }
  return nullptr;
}

std::vector<PoolOffer> UsablePools::Offers() const {
  std::vector<PoolOffer> offers;
  for (const PoolView& view : pools) offers.push_back({&view.pool, view.units, view.bound});
  return offers;
}

std::map<std::string, int> UsablePools::Units() const {
  std::map<std::string, int> units;
  for (const PoolView& view : pools) units[view.pool.name] = view.units;
  return units;
}

absl::StatusOr<PoolChoice> FindUsablePools(Pass& pass, const TrainingJob& job) {
  MEDLEY_ASSIGN_OR_RETURN(const PoolsView all, pass.Ask(ReadPools{job.pools}));
  PoolChoice choice;
  choice.refusal = Select(all, job, choice.pools);
  return choice;
}

}  // namespace medley::ops::lifecycle
