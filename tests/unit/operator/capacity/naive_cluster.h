// A cluster scheduled the slow way, to compare with: pods are lived through in time, units are
// placed one by one, quotas admit one by one. Shares no code with operator/capacity. Pure.
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

  // How many pods like `unit` can still be created and bound, when the pods of `job` that may move
  // are away; `limit`: units of the pool in all. `job` empty: nobody is away, no quota asks.
  int Place(const kube::Json& unit, int limit, const std::string& pool, const std::string& job) const;
};

}  // namespace medley::ops
