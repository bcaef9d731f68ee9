// The room on nodes: what is left beside the pods that are bound to a node, and beside those that wait for one.
//
// A waiting pod takes room as the Kubernetes scheduler would give it: on the first node, by name, that allows the pod
// and has room. It has no place if there is no such node, and gets one as soon as there is. So two readers do not count
// the same room twice, while a waiting pod that no node can take blocks nobody.
//
// A value that is used under the lock of its owner (CapacityView). Pods are placed when the room is read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/capacity/node_facts.h"

namespace medley::ops {

class NodeRoom {
 public:
  // False: nothing changed.
  bool Put(NodeFacts facts);
  bool Erase(const std::string& name);
  // Null: the node is not known.
  const NodeFacts* Find(const std::string& name) const;
  const std::set<std::string>& noticed() const { return noticed_; }
  std::vector<const NodeFacts*> Nodes() const;

  // A pod that is bound to `node`, which may be a node that is not known. `pod` is new.
  void Bind(const kube::Key& pod, const std::string& node, const Amounts& requests);
  // A pod that waits for a node. `pod` is new.
  void Wait(const kube::Key& pod, std::shared_ptr<const PodDemand> demand);
  void Remove(const kube::Key& pod);  // of either kind, or unknown
  std::set<kube::Key> BoundTo(const std::string& node) const;
  // For a waiting pod: true when a node has room for it.
  bool HasPlace(const kube::Key& pod);

  // How many such pods fit: beside all others; beside all but `without`; on empty nodes. At most kUnbounded.
  int64_t Fits(const PodDemand& unit);
  int64_t FitsWithout(const PodDemand& unit, const std::vector<kube::Key>& without);
  int64_t FitsWhenEmpty(const PodDemand& unit) const;

 private:
  struct Pod {
    std::string node;  // bound, or placed; empty: a waiting pod without a place
    Amounts requests;
    std::shared_ptr<const PodDemand> waits;  // null: bound
    size_t kind = 0;                         // of `waits`: equal for pods that fit on the same nodes
    uint64_t order = 0;                      // of waiting pods: the first is placed first
  };
  struct Node {
    std::optional<NodeFacts> facts;  // absent: a pod is bound to the node, but it is not known
    Amounts used;
    std::set<kube::Key> bound;
    std::set<kube::Key> placed;
  };
  struct CachedFits {
    uint64_t revision = 0;
    int64_t fits = 0;
  };

  void Take(const kube::Key& key, const Pod& pod);
  void GiveBack(const kube::Key& key, const Pod& pod);
  static bool IsOverfull(const Node& node);
  // Pods that are placed on the node are placed anew.
  void Displace(const std::string& node);
  void PlaceWaiting();

  std::map<std::string, Node> nodes_;
  std::set<std::string> noticed_;
  std::map<kube::Key, Pod> pods_;
  std::map<uint64_t, kube::Key> unplaced_;  // by Pod::order
  std::set<std::string> changed_;           // nodes to be displaced
  bool may_place_ = false;                  // something has changed since waiting pods were placed
  uint64_t next_order_ = 1;
  uint64_t revision_ = 1;
  std::map<std::string, CachedFits> cached_;  // by fingerprint
};

}  // namespace medley::ops
