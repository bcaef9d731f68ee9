#include "operator/capacity/node_room.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace medley::ops {
namespace {

constexpr size_t kMaxCached = 256;  // far more than there are pairs of a pool and a pod template

}  // namespace

bool NodeRoom::Put(NodeFacts facts) {
  const std::string name = facts.name;
  Node& node = nodes_[name];
  if (node.facts == facts) return false;
  if (facts.notice) {
    noticed_.insert(name);
  } else {
    noticed_.erase(name);
  }
  node.facts = std::move(facts);
  changed_.insert(name);
  may_place_ = true;
  ++revision_;
  return true;
}

bool NodeRoom::Erase(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end() || !found->second.facts) return false;
  noticed_.erase(name);
  found->second.facts.reset();
  if (found->second.bound.empty() && found->second.placed.empty()) nodes_.erase(found);
  changed_.insert(name);
  may_place_ = true;
  ++revision_;
  return true;
}

const NodeFacts* NodeRoom::Find(const std::string& name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() || !found->second.facts ? nullptr : &*found->second.facts;
}

std::vector<const NodeFacts*> NodeRoom::Nodes() const {
  std::vector<const NodeFacts*> nodes;
  for (const auto& [name, node] : nodes_) {
    if (node.facts) nodes.push_back(&*node.facts);
  }
  return nodes;
}

bool NodeRoom::IsOverfull(const Node& node) {
  return node.facts && std::any_of(node.used.begin(), node.used.end(), [&](const auto& used) {
           const auto has = node.facts->allocatable.find(used.first);
           return has != node.facts->allocatable.end() && used.second > has->second;
         });
}

void NodeRoom::Take(const kube::Key& key, const Pod& pod) {
  Node& node = nodes_[pod.node];
  Add(pod.requests, node.used);
  node.used["pods"] += 1;
  (pod.waits == nullptr ? node.bound : node.placed).insert(key);
}

void NodeRoom::GiveBack(const kube::Key& key, const Pod& pod) {
  const auto found = nodes_.find(pod.node);
  Node& node = found->second;
  Subtract(pod.requests, node.used);
  node.used["pods"] -= 1;
  (pod.waits == nullptr ? node.bound : node.placed).erase(key);
  if (!node.facts && node.bound.empty() && node.placed.empty()) nodes_.erase(found);
}

void NodeRoom::Bind(const kube::Key& key, const std::string& node, const Amounts& requests) {
  Pod& pod = pods_[key];
  pod = {node, requests, nullptr, 0, 0};
  Take(key, pod);
  ++revision_;
  if (Node& there = nodes_.at(node); !there.placed.empty() && IsOverfull(there)) {
    changed_.insert(node);
    may_place_ = true;
  }
}

void NodeRoom::Wait(const kube::Key& key, std::shared_ptr<const PodDemand> demand) {
  Pod& pod = pods_[key];
  pod.requests = demand->amounts.requests;
  pod.kind = std::hash<std::string>()(demand->Fingerprint());
  pod.waits = std::move(demand);
  pod.order = next_order_++;
  unplaced_[pod.order] = key;
  may_place_ = true;
  ++revision_;
}

void NodeRoom::Remove(const kube::Key& key) {
  const auto found = pods_.find(key);
  if (found == pods_.end()) return;
  const Pod pod = std::move(found->second);
  pods_.erase(found);
  if (!pod.node.empty()) {
    GiveBack(key, pod);
    may_place_ = true;
  }
  if (pod.waits != nullptr) unplaced_.erase(pod.order);
  ++revision_;
}

std::set<kube::Key> NodeRoom::BoundTo(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? std::set<kube::Key>() : found->second.bound;
}

void NodeRoom::Displace(const std::string& name) {
  const auto node = nodes_.find(name);
  if (node == nodes_.end()) return;
  const std::set<kube::Key> placed = node->second.placed;
  for (const kube::Key& key : placed) {
    Pod& pod = pods_.at(key);
    GiveBack(key, pod);
    pod.node.clear();
    unplaced_[pod.order] = key;
  }
}

void NodeRoom::PlaceWaiting() {
  if (!may_place_) return;
  for (const std::string& node : changed_) Displace(node);
  changed_.clear();
  may_place_ = false;
  // By kind. Room only shrinks from here on: no node before this one has room for such a pod.
  std::unordered_map<size_t, std::map<std::string, Node>::iterator> from;
  for (auto next = unplaced_.begin(); next != unplaced_.end();) {
    const kube::Key key = next->second;
    Pod& pod = pods_.at(key);
    const auto at = from.try_emplace(pod.kind, nodes_.begin()).first;
    const auto has_room = [&](const auto& node) {
      return node.second.facts && Allows(*node.second.facts, *pod.waits) &&
             FitsBeside(*node.second.facts, node.second.used, pod.requests) > 0;
    };
    at->second = std::find_if(at->second, nodes_.end(), has_room);
    if (at->second == nodes_.end()) {
      ++next;
      continue;
    }
    pod.node = at->second->first;
    Take(key, pod);
    next = unplaced_.erase(next);
  }
  ++revision_;
}

bool NodeRoom::HasPlace(const kube::Key& key) {
  PlaceWaiting();
  const auto found = pods_.find(key);
  return found != pods_.end() && !found->second.node.empty();
}

int64_t NodeRoom::Fits(const PodDemand& unit) {
  PlaceWaiting();
  if (cached_.size() > kMaxCached) cached_.clear();
  CachedFits& cached = cached_[unit.Fingerprint()];
  if (cached.revision == revision_) return cached.fits;
  int64_t sum = 0;
  for (const auto& [name, node] : nodes_) {
    if (!node.facts || !Allows(*node.facts, unit)) continue;
    sum += FitsBeside(*node.facts, node.used, unit.amounts.requests);
  }
  cached = {revision_, std::min(sum, kUnbounded)};
  return cached.fits;
}

int64_t NodeRoom::FitsWithout(const PodDemand& unit, const std::vector<kube::Key>& without) {
  int64_t fits = Fits(unit);
  std::map<std::string, Amounts> held;
  for (const kube::Key& key : without) {
    const auto pod = pods_.find(key);
    if (pod == pods_.end() || pod->second.node.empty()) continue;
    Amounts& on_node = held[pod->second.node];
    Add(pod->second.requests, on_node);
    on_node["pods"] += 1;
  }
  for (const auto& [name, amounts] : held) {
    const Node& node = nodes_.at(name);
    if (!node.facts || !Allows(*node.facts, unit)) continue;
    Amounts rest = node.used;
    Subtract(amounts, rest);
    fits += FitsBeside(*node.facts, rest, unit.amounts.requests) -
            FitsBeside(*node.facts, node.used, unit.amounts.requests);
  }
  return std::min(fits, kUnbounded);
}

int64_t NodeRoom::FitsWhenEmpty(const PodDemand& unit) const {
  static const Amounts nothing;
  int64_t sum = 0;
  for (const auto& [name, node] : nodes_) {
    if (node.facts && Allows(*node.facts, unit)) sum += FitsBeside(*node.facts, nothing, unit.amounts.requests);
  }
  return std::min(sum, kUnbounded);
}

}  // namespace medley::ops
