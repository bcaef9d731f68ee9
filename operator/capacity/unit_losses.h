// Watches the units of pools of spot machines: how long they live, how long they take to start, and how many are lost.
//
// A unit is a pod with a node. It is lost when its node is taken back, drained, lost or deleted while the pod has not
// ended; a pod that is deleted while its node stays does not count. What was learned is stored in the pool's
// status, so a process that has just started to lead goes on with it. Thread-safe. Owner: PoolReconciler, or a test.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "operator/api/pool_lifetimes.h"

namespace medley::ops {

class UnitLosses {
 public:
  struct Unit {
    std::string uid;           // of the pod
    double start_seconds = 0;  // from the pod's creation to its node
    bool lost = false;
  };

  // `pool`: a ResourcePool; `units`: all that it has now. Returns what is known of the pool. Its status counts where
  // this process knows nothing of the pool yet; of units that exist then, neither start nor loss counts.
  PoolLifetimes See(const kube::Object& pool, const std::vector<Unit>& units, base::WallTime now);
  void Forget(const std::string& pool);

 private:
  struct Pool {
    std::string uid;
    PoolLifetimes lifetimes;
    std::set<std::string> live, lost;  // UIDs of pods that exist
  };

  base::Mutex mutex_;
  std::map<std::string, Pool> pools_ ABSL_GUARDED_BY(mutex_);  // by name
};

}  // namespace medley::ops
