#include "operator/capacity/pool_outages.h"

#include <algorithm>
#include <utility>

namespace medley::ops {
namespace {

std::set<std::string> Uids(const PoolOutages::Placed& placed) {
  std::set<std::string> uids;
  for (const auto& [uid, zone] : placed) uids.insert(uid);
  return uids;
}

}  // namespace

PoolOutages::Pool& PoolOutages::Known(const kube::Object& pool) {
  const auto [known, is_new] = pools_.try_emplace(pool.key().name);
  if (is_new || known->second.uid != pool.uid()) {
    known->second = {pool.uid(), {}};
    for (PoolOutage& outage : OutagesFromJson(pool.At("/status/outages"))) {
      known->second.entries.push_back({std::move(outage), std::nullopt});
    }
  }
  return known->second;
}

std::vector<PoolOutage> PoolOutages::Of(const kube::Object& pool) {
  base::MutexLock lock(mutex_);
  std::vector<PoolOutage> outages;
  for (const Entry& entry : Known(pool).entries) {
    if (entry.outage.generation == pool.generation()) outages.push_back(entry.outage);
  }
  return outages;
}

bool PoolOutages::Fail(const kube::Object& pool, const std::string& zone, const Placed& placed, base::WallTime now) {
  base::MutexLock lock(mutex_);
  std::vector<Entry>& entries = Known(pool).entries;
  std::erase_if(entries, [&](const Entry& entry) { return entry.outage.generation != pool.generation(); });
  const auto before =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.outage.zone == zone; });
  if (before == entries.end()) {
    entries.push_back({AfterFailure(std::nullopt, zone, pool.generation(), now), Uids(placed)});
    return true;
  }
  if (FindActive({before->outage}, pool.generation(), zone, now) != nullptr) return false;
  *before = {AfterFailure(before->outage, zone, pool.generation(), now), Uids(placed)};
  return true;
}

bool PoolOutages::See(const kube::Object& pool, const Placed& placed) {
  base::MutexLock lock(mutex_);
  return std::erase_if(Known(pool).entries, [&](Entry& entry) {
           if (!entry.placed) entry.placed = Uids(placed);
           return std::any_of(placed.begin(), placed.end(), [&](const auto& pod) {
             const bool there = entry.outage.zone.empty() || entry.outage.zone == pod.second;
             return there && !entry.placed->contains(pod.first);
           });
         }) > 0;
}

void PoolOutages::Forget(const std::string& pool) {
  base::MutexLock lock(mutex_);
  pools_.erase(pool);
}

}  // namespace medley::ops
