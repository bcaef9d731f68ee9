// The Node objects of the virtual nodes. Creates or takes them over at the start, renews their heartbeat, and marks
// them not ready at the end. Thread-safe.
#pragma once

#include <string>

#include "common/base/clock.h"
#include "kube/client.h"
#include "localcluster/node/process_node.h"

namespace medley::localcluster {

// The status of a virtual node. Pure.
kube::Json NodeStatus(const VirtualNode& node, const kube::Json& old_status, bool ready, base::WallTime now);

class NodeRegistrar {
 public:
  NodeRegistrar(kube::Client& client, base::Clock& clock, const std::vector<VirtualNode>& nodes)
      : client_(client), clock_(clock), nodes_(nodes) {}

  // Creates each node, or sets the labels of the existing one. Errors: those of the API.
  absl::Status Register();
  // Writes each node's status; recreates a node that was deleted. Errors: the first error of the API.
  absl::Status Beat(bool ready);

 private:
  absl::Status RegisterOne(const VirtualNode& node);
  absl::Status BeatOne(const VirtualNode& node, bool ready);

  kube::Client& client_;
  base::Clock& clock_;
  const std::vector<VirtualNode>& nodes_;
};

}  // namespace medley::localcluster
