#include "operator/capacity/capacity_view.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/base/status.h"
#include "kube/pod.h"
#include "operator/api/resources.h"

namespace medley::ops {
namespace {

int Bounded(int64_t units) { return static_cast<int>(std::clamp<int64_t>(units, 0, kUnbounded)); }

// True when the change may allow more units: another limit or scope, or less use.
bool FreesSomething(const QuotaFacts& before, const QuotaFacts& now) {
  if (before.hard != now.hard || before.scopes != now.scopes) return true;
  return std::any_of(before.used.begin(), before.used.end(),
                     [&](const auto& used) { return AmountOf(now.used, used.first) < used.second; });
}

QuotaSubject SubjectOf(const PodDemand& demand) {
  return {demand.priority_class, demand.terminating, demand.best_effort};
}

}  // namespace

bool CapacityView::PodFacts::operator==(const PodFacts& other) const {
  const auto all = [](const PodFacts& f) {
    return std::tie(f.node, f.amounts, f.subject.priority_class, f.subject.terminating, f.subject.best_effort, f.job,
                    f.is_member, f.is_unit, f.pool, f.zone, f.terminating, f.exists);
  };
  const bool same_claim = claim == nullptr || other.claim == nullptr ? claim == other.claim : *claim == *other.claim;
  return same_claim && all(*this) == all(other);
}

std::optional<CapacityView::PodFacts> CapacityView::FactsOfPod(const kube::Object& pod) {
  if (kube::HasEnded(pod)) return std::nullopt;
  PodFacts facts;
  facts.node = pod.String("/spec/nodeName");
  if (facts.node.empty()) facts.node = pod.String("/status/nominatedNodeName");
  PodDemand demand = DemandOf(pod);
  facts.amounts = demand.amounts;
  facts.subject = SubjectOf(demand);
  facts.terminating = pod.deleting();
  const auto owner = pod.controller();
  if (!owner || owner->kind != TrainingJobs().kind) return facts;
  Claim claim{{pod.key().ns, owner->name}, owner->uid, pod.label(kPoolLabel), "", false, false};
  claim.is_signed = pod.annotation(kUnsignedAnnotation).empty();
  const std::string role = pod.label(kRoleLabel);
  claim.is_member = role == "trainer" || role == "server";
  claim.is_unit = claim.is_member || role == "profiler";
  if (claim.is_member) claim.zone = PinnedZone(demand);
  facts.claim = std::make_shared<const Claim>(std::move(claim));
  if (facts.node.empty()) facts.demand = std::make_shared<const PodDemand>(std::move(demand));
  return facts;
}

bool CapacityView::IsBelieved(const Claim& claim) const {
  if (!expected_ || (!expected_->empty() && *expected_ != claim.job.ns)) return true;
  const auto known = job_uids_.find(claim.job);
  return claim.is_signed && known != job_uids_.end() && known->second == claim.uid;
}

void CapacityView::Identify(const kube::Key& key, PodFacts& facts) const {
  const auto uid = reserved_by_.find(key);
  if (uid != reserved_by_.end()) {
    const PodFacts& planned = reserved_.at(uid->second).at(key);
    facts.job = planned.job;
    facts.pool = planned.pool;
    facts.is_member = planned.is_member;
    facts.is_unit = planned.is_unit;
    facts.zone = facts.claim == nullptr ? "" : facts.claim->zone;
    return;
  }
  const bool believed = facts.claim != nullptr && IsBelieved(*facts.claim);
  facts.job = believed ? facts.claim->job : kube::Key();
  facts.pool = believed ? facts.claim->pool : "";
  facts.zone = believed ? facts.claim->zone : "";
  facts.is_member = believed && facts.claim->is_member;
  facts.is_unit = believed && facts.claim->is_unit;
}

void CapacityView::IdentifyAgain(const kube::Key& key) {
  const auto known = pods_.find(key);
  if (known == pods_.end() || !known->second.exists) return;
  PodFacts facts = known->second;
  Identify(key, facts);
  if (facts == known->second) return;
  Erase(key);
  Insert(key, std::move(facts));
}

void CapacityView::ExpectJobs(const std::string& ns) {
  base::MutexLock lock(mutex_);
  expected_ = ns;
}

void CapacityView::PutJob(const kube::Key& job, const std::string& uid) {
  base::MutexLock lock(mutex_);
  job_uids_[job] = uid;
  erased_jobs_.erase(job);
  std::vector<kube::Key> claims;
  for (auto pod = unbelieved_.lower_bound({job.ns, ""}); pod != unbelieved_.end() && pod->ns == job.ns; ++pod) {
    if (pods_.at(*pod).claim->job == job) claims.push_back(*pod);
  }
  for (const kube::Key& pod : claims) IdentifyAgain(pod);
}

void CapacityView::EraseJob(const kube::Key& job) {
  base::MutexLock lock(mutex_);
  if (job_pods_.contains(job)) {
    erased_jobs_.insert(job);
  } else {
    job_uids_.erase(job);
  }
}

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

bool CapacityView::PutNode(const kube::Object& node) {
  NodeFacts facts = ops::FactsOf(node);
  base::MutexLock lock(mutex_);
  const bool changed = room_.Put(std::move(facts));
  freed_ = freed_ || changed;
  return changed;
}

bool CapacityView::EraseNode(const std::string& name) {
  base::MutexLock lock(mutex_);
  return room_.Erase(name);
}

void CapacityView::Count(const PodFacts& pod, int sign) {
  if (!pod.is_unit) return;
  PoolCount& pool = pools_[pod.pool];
  (pod.exists ? pool.units : pool.reserved) += sign;
  if (pod.job.name.empty()) return;
  int& of_job = pool.by_job[pod.job];
  of_job += sign;
  if (of_job == 0) pool.by_job.erase(pod.job);
}

const CapacityView::PoolCount& CapacityView::CountOf(const std::string& pool) const {
  static const PoolCount none;
  const auto found = pools_.find(pool);
  return found == pools_.end() ? none : found->second;
}

void CapacityView::Insert(const kube::Key& key, PodFacts facts) {
  if (!facts.node.empty()) {
    room_.Bind(key, facts.node, facts.amounts.requests);
  } else if (facts.demand != nullptr && !facts.job.name.empty()) {
    room_.Wait(key, facts.demand);
  }
  Count(facts, 1);
  if (!facts.exists) not_created_.insert(key);
  if (!facts.job.name.empty()) job_pods_[facts.job].insert(key);
  if (facts.job.name.empty() && facts.claim != nullptr) unbelieved_.insert(key);
  pods_[key] = std::move(facts);
}

bool CapacityView::Erase(const kube::Key& key) {
  const auto found = pods_.find(key);
  if (found == pods_.end()) return false;
  const PodFacts& pod = found->second;
  room_.Remove(key);
  Count(pod, -1);
  not_created_.erase(key);
  unbelieved_.erase(key);
  if (const auto job = job_pods_.find(pod.job); job != job_pods_.end()) {
    job->second.erase(key);
    if (job->second.empty()) job_pods_.erase(job);
  }
  pods_.erase(found);
  return true;
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

bool CapacityView::PutPod(const kube::Object& object) {
  const kube::Key key = object.key();
  std::optional<PodFacts> facts = FactsOfPod(object);
  base::MutexLock lock(mutex_);
  const auto known = pods_.find(key);
  if (!facts) {
    return EraseExisting(key);
  }
  Identify(key, *facts);
  if (known != pods_.end() && known->second == *facts) return false;
  if (known != pods_.end() && known->second.exists) {
    const PodFacts& before = known->second;
    // Where the coordinator would be bound was a guess.
    const bool guessed = !before.is_unit && before.demand != nullptr;
    const bool moved = (guessed || !before.node.empty()) && before.node != facts->node;
    freed_ = freed_ || moved || before.amounts != facts->amounts || (before.is_unit && before.pool != facts->pool);
  }
  Erase(key);
  Insert(key, *std::move(facts));
  return true;
}

bool CapacityView::EraseExisting(const kube::Key& key) {
  const auto known = pods_.find(key);
  if (known == pods_.end() || !known->second.exists) return false;
  const PodFacts& pod = known->second;
  const bool is_kept = reserved_by_.contains(key);  // for the pod that replaces it
  freed_ = freed_ || (!is_kept && (pod.is_unit || pod.demand != nullptr || !pod.node.empty()));
  const kube::Key job = pod.job;
  Erase(key);
  InsertReserved(key);
  if (!job_pods_.contains(job) && erased_jobs_.erase(job) > 0) job_uids_.erase(job);
  return true;
}

bool CapacityView::ErasePod(const kube::Key& key) {
  base::MutexLock lock(mutex_);
  return EraseExisting(key);
}

bool CapacityView::PutQuota(const kube::Object& quota) {
  QuotaFacts facts = QuotaFactsOf(quota);
  base::MutexLock lock(mutex_);
  const auto known = quotas_.find(quota.key());
  const bool more = known == quotas_.end() || FreesSomething(known->second, facts);
  quotas_[quota.key()] = std::move(facts);
  freed_ = freed_ || more;
  if (more) ++quota_changes_[quota.key().ns];
  return more;
}

int64_t CapacityView::QuotaChanges(const std::string& ns) const {
  base::MutexLock lock(mutex_);
  const auto changes = quota_changes_.find(ns);
  return changes == quota_changes_.end() ? 0 : changes->second;
}

void CapacityView::EraseQuota(const kube::Key& key) {
  base::MutexLock lock(mutex_);
  quotas_.erase(key);
  ++quota_changes_[key.ns];
  freed_ = true;
}

void CapacityView::PutLimitRange(const kube::Object& limit_range) {
  base::MutexLock lock(mutex_);
  limit_ranges_[limit_range.key()] = limit_range;
}

void CapacityView::EraseLimitRange(const kube::Key& key) {
  base::MutexLock lock(mutex_);
  limit_ranges_.erase(key);
}

PodDemand CapacityView::Demand(const kube::Object& pod) const {
  kube::Object with_defaults = pod;
  const std::string ns = pod.key().ns;
  {
    base::MutexLock lock(mutex_);
    for (auto it = limit_ranges_.lower_bound({ns, ""}); it != limit_ranges_.end() && it->first.ns == ns; ++it) {
      ApplyLimitRange(it->second, with_defaults);
    }
  }
  return DemandOf(with_defaults);
}

std::vector<kube::Key> CapacityView::Movable(const ResourcePool& pool, const PodDemand& unit,
                                             const kube::Key& job) const {
  std::vector<kube::Key> movable;
  const auto own = job_pods_.find(job);
  if (own == job_pods_.end()) return movable;
  const std::string zone = PinnedZone(unit);
  const bool has_plan = std::any_of(own->second.begin(), own->second.end(), [&](const kube::Key& key) {
    return pods_.at(key).is_member && reserved_by_.contains(key);
  });
  for (const kube::Key& key : own->second) {
    const PodFacts& pod = pods_.at(key);
    if (!pod.is_member) continue;
    if (!pod.exists) {
      if (!pod.until_switch) movable.push_back(key);
      continue;
    }
    if (pod.pool != pool.name || room_.noticed().contains(pod.node)) continue;
    const auto uid = reserved_by_.find(key);
    // The pod that replaces a terminating one has the same name, so it does not exist beside it.
    if (pod.terminating && uid == reserved_by_.end()) continue;
    if (uid == reserved_by_.end()) {
      if (!has_plan && pod.zone == zone) movable.push_back(key);
      continue;
    }
    // The cache of pods does not keep to which zone a pod is pinned; the plan has it.
    const PodFacts& planned = reserved_.at(uid->second).at(key);
    if (planned.zone == zone && !planned.until_switch) movable.push_back(key);
  }
  return movable;
}

void CapacityView::BoundByQuotas(const PodDemand& unit, const kube::Key& job, const std::vector<kube::Key>& movable,
                                 JobUnits& units) const {
  for (auto it = quotas_.lower_bound({job.ns, ""}); it != quotas_.end() && it->first.ns == job.ns; ++it) {
    const QuotaFacts& quota = it->second;
    Amounts held;  // that status.used has and the next plan has not, less what it does not have yet
    const auto count = [&](const PodFacts& pod, int64_t sign) {
      if (!CountsAgainst(quota, pod.subject)) return;
      for (const auto& [name, hard] : quota.hard) held[name] += sign * QuotaUsage(name, pod.amounts);
    };
    for (const kube::Key& key : movable) {
      if (const PodFacts& pod = pods_.at(key); pod.exists) count(pod, 1);
    }
    for (auto key = not_created_.lower_bound({job.ns, ""}); key != not_created_.end() && key->ns == job.ns; ++key) {
      if (const PodFacts& pod = pods_.at(*key); pod.job != job || !pod.is_member) count(pod, -1);
    }
    QuotaRoom room = RoomOf(quota, unit, held);
    if (room.units < units.units) units = {Bounded(room.units), std::move(room.bound), 0, {}};
  }
}

PoolUnits CapacityView::UnitsOf(const ResourcePool& pool, const PodDemand& unit) const {
  base::MutexLock lock(mutex_);
  const PoolCount& count = CountOf(pool.name);
  PoolUnits units;
  units.limit = pool.limit;
  units.used = count.units;
  units.capacity = Bounded(room_.FitsWhenEmpty(unit));
  const int64_t on_nodes = pool.scaling == PoolScaling::kAutoscaled ? pool.limit : room_.Fits(unit);
  units.free = Bounded(std::min<int64_t>(pool.limit - count.units - count.reserved, on_nodes));
  return units;
}

JobUnits CapacityView::UnitsFor(const ResourcePool& pool, const PodDemand& unit, const kube::Key& job) const {
  base::MutexLock lock(mutex_);
  const std::vector<kube::Key> movable = Movable(pool, unit, job);
  const auto mine = std::count_if(movable.begin(), movable.end(),
                                  [&](const kube::Key& key) { return pods_.at(key).pool == pool.name; });
  const PoolCount& count = CountOf(pool.name);
  JobUnits units;
  units.units = Bounded(pool.limit - (count.units + count.reserved - mine));
  units.bound = "spec.limit of pool " + pool.name;
  if (pool.scaling == PoolScaling::kNodes) {
    const int64_t free = room_.FitsWithout(unit, movable);
    if (free < units.units) {
      units.units = Bounded(free);
      units.bound = "free nodes of pool " + pool.name;
    }
  }
  for (const auto& [other, held] : count.by_job) {
    if (other == job) continue;
    units.held_by_others += held;
    units.others.push_back(other);
  }
  units.held_by_others = std::clamp(units.held_by_others, 0, std::max(0, pool.limit - units.units));
  BoundByQuotas(unit, job, movable, units);
  return units;
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

PoolZones CapacityView::ZonesOf(const ResourcePool& pool, const PodDemand& unit) const {
  static const Amounts nothing;
  PoolZones zones;
  const bool autoscaled = pool.scaling == PoolScaling::kAutoscaled;
  base::MutexLock lock(mutex_);
  for (const NodeFacts* node : room_.Nodes()) {
    const auto label = node->labels.find(kZoneLabel);
    if (label == node->labels.end() || label->second.empty()) continue;
    if (autoscaled) {  // nodes will come in any zone, with the label that the present ones carry
      zones.pinnable = true;
      return zones;
    }
    if (zones.zones.contains(label->second)) continue;
    NodeFacts facts = *node;
    facts.ready = true;
    facts.notice.reset();
    std::erase_if(facts.taints, [](const Taint& taint) { return taint.key.starts_with("node.kubernetes.io/"); });
    if (Allows(facts, unit) && FitsBeside(facts, nothing, unit.amounts.requests) > 0) zones.zones.insert(label->second);
  }
  zones.pinnable = !zones.zones.empty();
  return zones;
}

std::set<std::string> CapacityView::NamespacesOn(const std::string& pool) const {
  std::set<std::string> namespaces;
  base::MutexLock lock(mutex_);
  for (const auto& [key, pod] : pods_) {
    if (pod.exists && pod.is_unit && pod.pool == pool) namespaces.insert(key.ns);
  }
  return namespaces;
}

std::map<std::string, std::string> CapacityView::LabelsOf(const std::string& node) const {
  base::MutexLock lock(mutex_);
  const NodeFacts* facts = room_.Find(node);
  return facts == nullptr ? std::map<std::string, std::string>() : facts->labels;
}

std::optional<Notice> CapacityView::NoticeOf(const std::string& node) const {
  base::MutexLock lock(mutex_);
  const NodeFacts* facts = room_.Find(node);
  return facts == nullptr ? std::nullopt : facts->notice;
}

bool CapacityView::IsDown(const std::string& node) const {
  base::MutexLock lock(mutex_);
  const NodeFacts* facts = room_.Find(node);
  return facts != nullptr && !facts->ready;
}

std::set<kube::Key> CapacityView::JobsOn(const std::string& node) const {
  std::set<kube::Key> jobs;
  base::MutexLock lock(mutex_);
  for (const kube::Key& key : room_.BoundTo(node)) {
    const PodFacts& pod = pods_.at(key);
    if (!pod.job.name.empty()) jobs.insert(pod.job);
  }
  return jobs;
}

std::vector<std::string> CapacityView::NodesToAvoid(const PodDemand& unit) const {
  std::vector<std::string> avoid;
  base::MutexLock lock(mutex_);
  for (const std::string& name : room_.noticed()) {
    NodeFacts facts = *room_.Find(name);
    facts.notice.reset();
    if (Allows(facts, unit)) avoid.push_back(name);
  }
  return avoid;
}

}  // namespace medley::ops
