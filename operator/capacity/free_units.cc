// The part of CapacityView that answers: units that are free or that a job may hold, zones, nodes.
#include <algorithm>
#include <utility>

#include "operator/capacity/capacity_view.h"

namespace medley::ops {
namespace {

int Bounded(int64_t units) { return static_cast<int>(std::clamp<int64_t>(units, 0, kUnbounded)); }

}  // namespace

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
