// A slow reference implementation of capacity: it simulates each pod's containers over time, places units one by one
// and admits pods to quotas one by one. Shares no code with operator/capacity. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kube/object.h"

namespace medley::ops {

struct NaiveCluster {
  std::map<std::string, kube::Json> nodes;
  std::map<std::string, kube::Json> pods;  // by name, all of namespace "ns"
  std::map<std::string, kube::Json> quotas;

  // How many pods like `unit` could be created and bound if the trainers of `job` in the pool that are not on a node
  // with a notice were deleted. No pod of a job waits for a node. `limit`: the pool's limit, against which profilers
  // count as well. `job` empty: no pods are deleted and no quota applies.
  int Place(const kube::Json& unit, int limit, const std::string& pool, const std::string& job) const;
};

}  // namespace medley::ops
