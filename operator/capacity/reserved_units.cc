// The part of CapacityView that reserves units for plans, and releases them.
#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "operator/capacity/capacity_view.h"

namespace medley::ops {

CapacityView::PodFacts CapacityView::FactsOf(const UnitOwner& owner, const PlannedUnit& unit) {
  PodFacts facts;
  facts.amounts = unit.demand->amounts;
  facts.subject = SubjectOf(*unit.demand);
  facts.job = owner.job;
  facts.is_member = unit.holder == Holder::kMember;
  facts.is_unit = unit.holder != Holder::kCoordinator;
  if (unit.pool != nullptr) facts.pool = unit.pool->name;
  facts.zone = PinnedZone(*unit.demand);
  facts.exists = false;
  facts.until_switch = unit.until_switch;
  facts.demand = unit.demand;
  return facts;
}

void CapacityView::InsertReserved(const kube::Key& key) {
  const auto uid = reserved_by_.find(key);
  if (uid != reserved_by_.end() && !pods_.contains(key)) Insert(key, reserved_.at(uid->second).at(key));
}

void CapacityView::ReplaceReserved(const std::string& uid, Units units) {
  if (const auto before = reserved_.find(uid); before != reserved_.end()) {
    for (const auto& [key, facts] : before->second) {
      reserved_by_.erase(key);
      if (not_created_.contains(key)) Erase(key);
    }
    std::vector<kube::Key> released;
    for (const auto& [key, facts] : before->second) released.push_back(key);
    reserved_.erase(before);
    for (const kube::Key& key : released) {
      if (!units.contains(key)) IdentifyAgain(key);
    }
  }
  if (units.empty()) return;
  for (const auto& [key, facts] : units) {
    // An earlier job of the same name may not have been released yet.
    if (const auto other = reserved_by_.find(key); other != reserved_by_.end()) {
      reserved_.at(other->second).erase(key);
      if (not_created_.contains(key)) Erase(key);
    }
    reserved_by_[key] = uid;
  }
  const Units& kept = reserved_[uid] = std::move(units);
  for (const auto& [key, facts] : kept) {
    IdentifyAgain(key);
    InsertReserved(key);
  }
}

int CapacityView::Leaving(const UnitOwner& owner, const std::string& pool) const {
  const auto own = job_pods_.find(owner.job);
  if (own == job_pods_.end()) return 0;
  return static_cast<int>(std::count_if(own->second.begin(), own->second.end(), [&](const kube::Key& key) {
    const PodFacts& pod = pods_.at(key);
    if (!pod.is_member || (!pool.empty() && pod.pool != pool)) return false;
    const auto uid = reserved_by_.find(key);
    return uid == reserved_by_.end() ? pod.exists : reserved_.at(uid->second).at(key).until_switch;
  }));
}

std::string CapacityView::ExceededQuota(const std::string& ns, const PodDemand& unit) const {
  for (auto it = quotas_.lower_bound({ns, ""}); it != quotas_.end() && it->first.ns == ns; ++it) {
    const QuotaFacts& quota = it->second;
    if (!CountsAgainst(quota, SubjectOf(unit))) continue;
    Amounts used = quota.used;
    for (auto key = not_created_.lower_bound({ns, ""}); key != not_created_.end() && key->ns == ns; ++key) {
      const PodFacts& pod = pods_.at(*key);
      if (!CountsAgainst(quota, pod.subject)) continue;
      for (const auto& [name, hard] : quota.hard) used[name] += QuotaUsage(name, pod.amounts);
    }
    for (const auto& [name, hard] : quota.hard) {
      if (QuotaUsage(name, unit.amounts) > 0 && AmountOf(used, name) > hard) {
        return "ResourceQuota " + quota.key.name + ": " + name;
      }
    }
  }
  return "";
}

absl::Status CapacityView::CheckReserved(const UnitOwner& owner, const std::vector<PlannedUnit>& units) const {
  const auto refuse = [&](const std::string& bound, bool own) {
    if (own) {
      return base::FailedPrecondition(
          "the units of the new plan are free only once the job's present pods are deleted, and the pods of both plans "
          "exist during a switch; bounded by {}",
          bound);
    }
    return base::ResourceExhausted(
        "the units of the plan are not free together, or other jobs have got them since they "
        "were counted; bounded by {}",
        bound);
  };
  const bool leaving = Leaving(owner, "") > 0;
  std::set<const PodDemand*> checked;  // against quotas
  for (const PlannedUnit& unit : units) {
    if (unit.until_switch || pods_.at(unit.pod).exists) continue;
    if (const ResourcePool* pool = unit.pool.get(); pool != nullptr) {
      const PoolCount& count = pools_.at(pool->name);
      const int over = count.units + count.reserved - pool->limit;
      if (over > 0) return refuse("spec.limit of pool " + pool->name, over <= Leaving(owner, pool->name));
      if (pool->scaling == PoolScaling::kNodes && !room_.HasPlace(unit.pod)) {
        return refuse("free nodes of pool " + pool->name, leaving);
      }
    }
    if (!checked.insert(unit.demand.get()).second) continue;
    const std::string quota = ExceededQuota(owner.job.ns, *unit.demand);
    if (!quota.empty()) return refuse(quota, leaving);
  }
  return absl::OkStatus();
}

bool CapacityView::LosesUnits(const Units& before, const Units& now) {
  return std::any_of(before.begin(), before.end(), [&](const auto& unit) {
    const auto same = now.find(unit.first);
    return same == now.end() || same->second.pool != unit.second.pool || same->second.amounts != unit.second.amounts;
  });
}

absl::Status CapacityView::Reserve(const UnitOwner& owner, const std::vector<PlannedUnit>& units) {
  Units wanted;
  for (const PlannedUnit& unit : units) wanted[unit.pod] = FactsOf(owner, unit);
  base::MutexLock lock(mutex_);
  const auto found = reserved_.find(owner.uid);
  Units before = found == reserved_.end() ? Units() : found->second;
  ReplaceReserved(owner.uid, wanted);
  absl::Status fits = CheckReserved(owner, units);
  if (fits.ok()) {
    freed_ = freed_ || LosesUnits(before, wanted);
  } else {
    ReplaceReserved(owner.uid, std::move(before));
  }
  return fits;
}

void CapacityView::Restore(const UnitOwner& owner, const std::vector<PlannedUnit>& units) {
  Units wanted;
  for (const PlannedUnit& unit : units) wanted[unit.pod] = FactsOf(owner, unit);
  base::MutexLock lock(mutex_);
  if (const auto before = reserved_.find(owner.uid); before != reserved_.end()) {
    freed_ = freed_ || LosesUnits(before->second, wanted);
  }
  ReplaceReserved(owner.uid, std::move(wanted));
}

void CapacityView::Release(const std::string& uid) { Restore({{}, uid}, {}); }

void CapacityView::ReleaseJob(const kube::Key& job) {
  std::set<std::string> uids;
  {
    base::MutexLock lock(mutex_);
    const auto own = job_pods_.find(job);
    if (own == job_pods_.end()) return;
    for (const kube::Key& key : own->second) {
      const auto uid = reserved_by_.find(key);
      const bool is_profiler = pods_.at(key).is_unit && !pods_.at(key).is_member;
      if (uid != reserved_by_.end() && !is_profiler) uids.insert(uid->second);
    }
  }
  for (const std::string& uid : uids) Release(uid);
}

bool CapacityView::TakeFreed() {
  base::MutexLock lock(mutex_);
  return std::exchange(freed_, false);
}

}  // namespace medley::ops
