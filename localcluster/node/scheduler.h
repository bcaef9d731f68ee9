// Chooses a node for a pod: selector, required affinity, and room. Pure.
//
// Among the nodes that fit, the one with the fewest pods, then the first in order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/object.h"
#include "localcluster/node/process_node.h"
#include "localcluster/node/resource_limits.h"

namespace medley::kube {

// A node and what the pods bound to it leave. Absent in `free`: unlimited for cpu and memory, else none.
struct NodeRoom {
  const VirtualNode* node = nullptr;
  ResourceAmounts free;
  int pods = 0;
};

// allocatable less the requests of `bound` pods that have not ended.
// Errors: InvalidArgument for an allocatable that is no quantity.
absl::StatusOr<std::vector<NodeRoom>> RoomOf(const std::vector<VirtualNode>& nodes, const std::vector<ObjectPtr>& pods);

struct Placement {
  std::optional<std::string> node;
  std::string message;  // why not, as kube-scheduler words it
};

Placement PlacePod(const Object& pod, const std::vector<NodeRoom>& rooms);

// Succeeded or Failed.
bool HasEnded(const Object& pod);

}  // namespace medley::kube
