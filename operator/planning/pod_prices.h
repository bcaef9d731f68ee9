// What a pod of a job costs per hour. Pure.
//
// A member, and a profiler, has a whole unit of its pool. A coordinator has no pool: it has a part of the node that it
// is on, and costs that part of a unit of the pool that the node belongs to.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kube/object.h"
#include "operator/api/resource_pool.h"
#include "operator/planning/pool_prices.h"

namespace medley::ops {

using NodeLabels = std::map<std::string, std::string>;

// The pod's part of a unit: the largest of its parts of the unit's CPU and memory; above 1 if it requests more.
double PartOfUnit(const kube::Object& pod, const ResourcePool& pool);

// The pool whose nodeSelector the node matches; of several, the one that asks for most labels, then the first by name.
// A pool that selects no nodes is not considered. null: the node belongs to no pool.
const ResourcePool* PoolOfNode(const NodeLabels& node, const std::vector<ResourcePool>& pools);

// Not thread-safe; lives for one pass. Borrows the arguments of its constructor.
class PodPrices {
 public:
  PodPrices(const std::vector<ResourcePool>& pools, const PriceCatalog* catalog) : pools_(pools), catalog_(catalog) {}

  struct Price {
    std::string pool;         // empty: of a coordinator, or of a pod without a pool
    double part = 0;          // of a unit; 0: the pod has no pool
    double usd_per_hour = 0;  // 0: the pod has no pool, or the pool no price
  };
  // `node`: labels of the pod's node; empty: it has none.
  Price Of(const kube::Object& pod, const NodeLabels& node);

 private:
  double OfUnit(const ResourcePool& pool, const std::string& zone);

  const std::vector<ResourcePool>& pools_;
  const PriceCatalog* catalog_;
  std::map<std::pair<std::string, std::string>, double> known_;  // by pool and zone
};

}  // namespace medley::ops
