// The Node objects of the virtual nodes: made or taken over at the start, kept alive by a rare heartbeat,
// marked not ready at the end. Thread-safe.
#pragma once

#include <string>

#include "common/base/clock.h"
#include "kube/client.h"
#include "localcluster/node/process_node.h"

namespace medley::kube {

// The status of a virtual node. Pure.
Json NodeStatus(const VirtualNode& node, const Json& old_status, bool ready, base::WallTime now);

class NodeRegistrar {
 public:
  NodeRegistrar(Client& client, base::Clock& clock, const std::vector<VirtualNode>& nodes)
      : client_(client), clock_(clock), nodes_(nodes) {}

  // Creates each node, or sets the labels of the one that is there. Errors: the API's.
  absl::Status Register();
  // Writes each node's status; one that was deleted is made again. Errors: the first of the API's.
  absl::Status Beat(bool ready);

 private:
  absl::Status RegisterOne(const VirtualNode& node);
  absl::Status BeatOne(const VirtualNode& node, bool ready);

  Client& client_;
  base::Clock& clock_;
  const std::vector<VirtualNode>& nodes_;
};

}  // namespace medley::kube
