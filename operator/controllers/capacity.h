// Units of a pool: how many the nodes hold, how many are used, how many a job may have. Pure.
//
// A unit is what one trainer or server pod asks for (spec.unit.resources). A node that does not say
// how much cpu or memory it has, has enough of it; any other resource that it does not name it has
// not.
#pragma once

#include <string>
#include <vector>

#include "common/kube/object.h"
#include "operator/api/pool_status.h"
#include "operator/api/resource_pool.h"

namespace medley::ops {

// A snapshot of the caches.
struct ClusterState {
  std::vector<kube::ObjectPtr> nodes;
  std::vector<kube::ObjectPtr> pods;    // of all namespaces
  std::vector<kube::ObjectPtr> quotas;  // ResourceQuotas of all namespaces
};

// For the pool's status. `free` is bounded by the limit and by what free nodes hold (Autoscaled: by
// the limit alone).
PoolUnits UnitsOf(const ResourcePool& pool, const ClusterState& cluster);

// Units that the job may hold: what is free for it, and what it holds already; bounded by the
// namespace's quotas too.
int UnitsForJob(const ResourcePool& pool, const ClusterState& cluster, const kube::Key& job);

// Ready, schedulable and of the pool.
bool NodeServes(const kube::Object& node, const ResourcePool& pool);

}  // namespace medley::ops
