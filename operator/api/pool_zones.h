// In which zones a pool's units can be. A value.
#pragma once

#include <set>
#include <string>

namespace medley::ops {

// The well-known label of nodes (Kubernetes, "Well-Known Labels, Annotations and Taints").
inline constexpr char kZoneLabel[] = "topology.kubernetes.io/zone";

struct PoolZones {
  // Nodes carry the label, so that pods can be pinned to a zone. False on one machine or on bare metal, where a pinned
  // pod would find no node.
  bool pinnable = false;
  // Zones with nodes that hold a unit of the pool. Empty: any zone, because an autoscaler brings the nodes or because
  // no node of the pool carries the label.
  std::set<std::string> zones;
};

}  // namespace medley::ops
