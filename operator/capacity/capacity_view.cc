#include "operator/capacity/capacity_view.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/base/status.h"
#include "kube/pod.h"
#include "operator/api/resources.h"

namespace medley::ops {
namespace {

// True when the change may allow more units: another limit or scope, or less use.
bool FreesSomething(const QuotaFacts& before, const QuotaFacts& now) {
  if (before.hard != now.hard || before.scopes != now.scopes) return true;
  return std::any_of(before.used.begin(), before.used.end(),
                     [&](const auto& used) { return AmountOf(now.used, used.first) < used.second; });
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

}  // namespace medley::ops
