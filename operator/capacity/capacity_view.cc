#include "operator/capacity/capacity_view.h"

#include <algorithm>
#include <tuple>

#include "kube/pod.h"
#include "operator/api/resources.h"

namespace medley::ops {
namespace {

constexpr size_t kMaxCachedFree = 256;  // far more than there are pairs of a pool and a pod template

int Bounded(int64_t units) { return static_cast<int>(std::clamp<int64_t>(units, 0, kUnbounded)); }

}  // namespace

bool CapacityView::PodFacts::operator==(const PodFacts& other) const {
  const auto all = [](const PodFacts& f) {
    return std::tie(f.node, f.amounts, f.subject.priority_class, f.subject.terminating, f.subject.best_effort, f.job,
                    f.role, f.pool, f.terminating);
  };
  return all(*this) == all(other);
}

std::optional<CapacityView::PodFacts> CapacityView::FactsOfPod(const kube::Object& pod) {
  if (kube::HasEnded(pod)) return std::nullopt;
  PodFacts facts;
  facts.node = pod.String("/spec/nodeName");
  if (facts.node.empty()) facts.node = pod.String("/status/nominatedNodeName");
  const PodDemand demand = DemandOf(pod);
  facts.amounts = demand.amounts;
  facts.subject = {demand.priority_class, demand.terminating, demand.best_effort};
  facts.terminating = pod.deleting();
  const std::string job = pod.label(kJobNameLabel);
  const std::string role = pod.label(kRoleLabel);
  if (job.empty() || role.empty()) return facts;
  facts.job = {pod.key().ns, job};
  facts.pool = pod.label(kPoolLabel);
  if (role == "trainer" || role == "server") facts.role = Role::kUnit;
  if (role == "profiler") facts.role = Role::kProfiler;
  return facts;
}

bool CapacityView::PutNode(const kube::Object& node) {
  NodeFacts facts = FactsOf(node);
  base::MutexLock lock(mutex_);
  Node& known = nodes_[facts.name];
  if (known.facts == facts) return false;
  if (facts.notice) {
    noticed_.insert(facts.name);
  } else {
    noticed_.erase(facts.name);
  }
  known.facts = std::move(facts);
  ++revision_;
  return true;
}

bool CapacityView::EraseNode(const std::string& name) {
  base::MutexLock lock(mutex_);
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return false;
  noticed_.erase(name);
  found->second.facts.reset();
  if (found->second.pods.empty()) nodes_.erase(found);
  ++revision_;
  return true;
}

void CapacityView::Count(const PodFacts& pod, int sign) {
  if (!pod.node.empty()) {
    Amounts& used = nodes_[pod.node].used;
    if (sign > 0) {
      Add(pod.amounts.requests, used);
    } else {
      Subtract(pod.amounts.requests, used);
    }
    used["pods"] += sign;
  }
  if (pod.role != Role::kUnit) return;
  PoolCount& pool = pools_[pod.pool];
  pool.units += sign;
  if (pod.node.empty()) pool.waiting += sign;
}

bool CapacityView::ErasePodLocked(const kube::Key& key) {
  const auto found = pods_.find(key);
  if (found == pods_.end()) return false;
  const PodFacts& pod = found->second;
  Count(pod, -1);
  terminating_.erase(key);
  if (const auto node = nodes_.find(pod.node); node != nodes_.end()) {
    node->second.pods.erase(key);
    if (node->second.pods.empty() && !node->second.facts) nodes_.erase(node);
  }
  if (const auto job = job_pods_.find(pod.job); job != job_pods_.end()) {
    job->second.erase(key);
    if (job->second.empty()) job_pods_.erase(job);
  }
  pods_.erase(found);
  ++revision_;
  return true;
}

bool CapacityView::PutPod(const kube::Object& object) {
  const kube::Key key = object.key();
  std::optional<PodFacts> facts = FactsOfPod(object);
  base::MutexLock lock(mutex_);
  if (!facts) return ErasePodLocked(key);
  const auto known = pods_.find(key);
  if (known != pods_.end() && known->second == *facts) return false;
  ErasePodLocked(key);
  Count(*facts, 1);
  if (!facts->node.empty()) nodes_[facts->node].pods.insert(key);
  if (facts->terminating) terminating_.insert(key);
  if (!facts->job.name.empty()) job_pods_[facts->job].insert(key);
  pods_[key] = *std::move(facts);
  ++revision_;
  return true;
}

bool CapacityView::ErasePod(const kube::Key& key) {
  base::MutexLock lock(mutex_);
  return ErasePodLocked(key);
}

void CapacityView::PutQuota(const kube::Object& quota) {
  QuotaFacts facts = QuotaFactsOf(quota);
  base::MutexLock lock(mutex_);
  quotas_[quota.key()] = std::move(facts);
}

void CapacityView::EraseQuota(const kube::Key& key) {
  base::MutexLock lock(mutex_);
  quotas_.erase(key);
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

int64_t CapacityView::OnNodes(const PodDemand& unit, bool empty) const {
  static const Amounts nothing;
  int64_t sum = 0;
  for (const auto& [name, node] : nodes_) {
    if (!node.facts || !Allows(*node.facts, unit)) continue;
    sum += FitsBeside(*node.facts, empty ? nothing : node.used, unit.amounts.requests);
  }
  return std::min(sum, kUnbounded);
}

int64_t CapacityView::FreeOf(const PodDemand& unit) const {
  if (cached_free_.size() > kMaxCachedFree) cached_free_.clear();
  CachedFree& cached = cached_free_[unit.Fingerprint()];
  if (cached.revision != revision_) cached = {revision_, OnNodes(unit, false)};
  return cached.free;
}

int64_t CapacityView::FreeWithout(const PodDemand& unit, const std::vector<const PodFacts*>& own) const {
  int64_t free = FreeOf(unit);
  std::map<std::string, Amounts> held;
  for (const PodFacts* pod : own) {
    if (pod->node.empty()) continue;
    Amounts& on_node = held[pod->node];
    Add(pod->amounts.requests, on_node);
    on_node["pods"] += 1;
  }
  for (const auto& [name, amounts] : held) {
    const Node& node = nodes_.at(name);
    if (!node.facts || !Allows(*node.facts, unit)) continue;
    Amounts without = node.used;
    Subtract(amounts, without);
    free += FitsBeside(*node.facts, without, unit.amounts.requests) -
            FitsBeside(*node.facts, node.used, unit.amounts.requests);
  }
  return free;
}

std::vector<const CapacityView::PodFacts*> CapacityView::OwnPods(const kube::Key& job) const {
  std::vector<const PodFacts*> own;
  const auto found = job_pods_.find(job);
  if (found == job_pods_.end()) return own;
  for (const kube::Key& key : found->second) {
    const PodFacts& pod = pods_.at(key);
    if (pod.role != Role::kNone) own.push_back(&pod);
  }
  return own;
}

int CapacityView::UnitsOthersWillRelease(const std::string& pool, const kube::Key& job) const {
  std::set<kube::Key> released = terminating_;
  for (const std::string& name : noticed_) {
    const std::set<kube::Key>& pods = nodes_.at(name).pods;
    released.insert(pods.begin(), pods.end());
  }
  return static_cast<int>(std::count_if(released.begin(), released.end(), [&](const kube::Key& key) {
    const PodFacts& pod = pods_.at(key);
    return pod.role == Role::kUnit && pod.pool == pool && pod.job != job;
  }));
}

void CapacityView::BoundByQuotas(const PodDemand& unit, const std::string& ns, const std::vector<const PodFacts*>& own,
                                 JobUnits& units) const {
  for (auto it = quotas_.lower_bound({ns, ""}); it != quotas_.end() && it->first.ns == ns; ++it) {
    const QuotaFacts& quota = it->second;
    Amounts held;
    for (const PodFacts* pod : own) {
      if (!CountsAgainst(quota, pod->subject)) continue;
      for (const auto& [name, hard] : quota.hard) held[name] += QuotaUsage(name, pod->amounts);
    }
    QuotaRoom room = RoomOf(quota, unit, held);
    if (room.units < units.units) units = {Bounded(room.units), std::move(room.bound)};
  }
}

PoolUnits CapacityView::UnitsOf(const ResourcePool& pool, const PodDemand& unit) const {
  base::MutexLock lock(mutex_);
  const auto count = pools_.find(pool.name);
  PoolUnits units;
  units.limit = pool.limit;
  units.used = count == pools_.end() ? 0 : count->second.units;
  units.capacity = Bounded(OnNodes(unit, true));
  const int waiting = count == pools_.end() ? 0 : count->second.waiting;
  const bool autoscaled = pool.scaling == PoolScaling::kAutoscaled;
  const int64_t on_nodes = autoscaled ? pool.limit : FreeOf(unit) - waiting;
  units.free = Bounded(std::min<int64_t>(pool.limit - units.used, on_nodes));
  return units;
}

JobUnits CapacityView::UnitsFor(const ResourcePool& pool, const PodDemand& unit, const kube::Key& job) const {
  base::MutexLock lock(mutex_);
  const std::vector<const PodFacts*> own = OwnPods(job);
  const auto mine = [&](bool waiting) {
    return static_cast<int>(std::count_if(own.begin(), own.end(), [&](const PodFacts* pod) {
      return pod->role == Role::kUnit && pod->pool == pool.name && (!waiting || pod->node.empty());
    }));
  };
  const auto found = pools_.find(pool.name);
  const PoolCount count = found == pools_.end() ? PoolCount{} : found->second;
  const int others = count.units - mine(false) - UnitsOthersWillRelease(pool.name, job);
  JobUnits units{Bounded(pool.limit - others), "spec.limit of pool " + pool.name};
  if (pool.scaling == PoolScaling::kNodes) {
    // Units of other jobs that still wait for a node will take free ones.
    const int64_t free = FreeWithout(unit, own) - (count.waiting - mine(true));
    if (free < units.units) units = {Bounded(free), "free nodes of pool " + pool.name};
  }
  BoundByQuotas(unit, job.ns, own, units);
  return units;
}

PoolZones CapacityView::ZonesOf(const ResourcePool& pool, const PodDemand& unit) const {
  static const Amounts nothing;
  PoolZones zones;
  const bool autoscaled = pool.scaling == PoolScaling::kAutoscaled;
  base::MutexLock lock(mutex_);
  for (const auto& [name, node] : nodes_) {
    if (!node.facts) continue;
    const auto label = node.facts->labels.find(kZoneLabel);
    if (label == node.facts->labels.end() || label->second.empty()) continue;
    if (autoscaled) {  // nodes will come in any zone, with the label that the present ones carry
      zones.pinnable = true;
      return zones;
    }
    if (zones.zones.contains(label->second)) continue;
    NodeFacts facts = *node.facts;
    facts.ready = true;
    facts.notice.reset();
    std::erase_if(facts.taints, [](const Taint& taint) { return taint.key.starts_with("node.kubernetes.io/"); });
    if (Allows(facts, unit) && FitsBeside(facts, nothing, unit.amounts.requests) > 0) zones.zones.insert(label->second);
  }
  zones.pinnable = !zones.zones.empty();
  return zones;
}

std::optional<Notice> CapacityView::NoticeOf(const std::string& node) const {
  base::MutexLock lock(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.facts) return std::nullopt;
  return found->second.facts->notice;
}

bool CapacityView::IsDown(const std::string& node) const {
  base::MutexLock lock(mutex_);
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.facts && !found->second.facts->ready;
}

std::set<kube::Key> CapacityView::JobsOn(const std::string& node) const {
  std::set<kube::Key> jobs;
  base::MutexLock lock(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return jobs;
  for (const kube::Key& key : found->second.pods) {
    const PodFacts& pod = pods_.at(key);
    if (!pod.job.name.empty()) jobs.insert(pod.job);
  }
  return jobs;
}

std::vector<std::string> CapacityView::NodesToAvoid(const PodDemand& unit) const {
  std::vector<std::string> avoid;
  base::MutexLock lock(mutex_);
  for (const std::string& name : noticed_) {
    NodeFacts facts = *nodes_.at(name).facts;
    facts.notice.reset();
    if (Allows(facts, unit)) avoid.push_back(name);
  }
  return avoid;
}

}  // namespace medley::ops
