// Chooses a node for a pod by selector, required affinity and free resources. Pure.
//
// Among the nodes that fit it takes the one with the fewest pods; ties go to the first in order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/object.h"
#include "localcluster/node/process_node.h"
#include "localcluster/node/resource_limits.h"

namespace medley::localcluster {

// A node and the resources that its pods leave free. If absent in `free`, cpu and memory are unlimited; others are 0.
struct NodeRoom {
  const VirtualNode* node = nullptr;
  ResourceAmounts free;
  int pods = 0;
};

// The allocatable resources less the requests of bound `pods` that have not ended.
// Errors: InvalidArgument for an allocatable that is not a quantity.
absl::StatusOr<std::vector<NodeRoom>> RoomOf(const std::vector<VirtualNode>& nodes,
                                             const std::vector<kube::ObjectPtr>& pods);

struct Placement {
  std::optional<std::string> node;
  std::string message;  // why no node fits, in the words of kube-scheduler
};

Placement PlacePod(const kube::Object& pod, const std::vector<NodeRoom>& rooms);

}  // namespace medley::localcluster
