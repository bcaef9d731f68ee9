// The outages of all pools, shared by all jobs: whichever job's pods find no node, no job plans new units of the pool
// until the outage has ended (operator/api/pool_outage.h). An outage ends early when a pod of the pool gets a node.
//
// The pool's status stores the outages, so a process that has just started to lead goes on with those of the last.
// Thread-safe. Owner: OperatorApp, or a test.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "operator/api/pool_outage.h"

namespace medley::ops {

class PoolOutages {
 public:
  // The pool's pods that have a node: their zones (empty: not pinned to one), by UID.
  using Placed = std::map<std::string, std::string>;

  // `pool`: a ResourcePool. Its status counts where this process knows nothing of the pool yet.
  std::vector<PoolOutage> Of(const kube::Object& pool);
  // Pods of the pool have found no node in `zone` for their time. False: an outage lasts, of which this is a part.
  bool Fail(const kube::Object& pool, const std::string& zone, const Placed& placed, base::WallTime now);
  // Ends the outages of zones in which a pod has got a node since the last failure. True: one has ended.
  bool See(const kube::Object& pool, const Placed& placed);
  void Forget(const std::string& pool);

 private:
  struct Entry {
    PoolOutage outage;
    std::optional<std::set<std::string>> placed;  // UIDs at the last failure; absent: not known yet
  };
  struct Pool {
    std::string uid;
    std::vector<Entry> entries;
  };
  Pool& Known(const kube::Object& pool) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  base::Mutex mutex_;
  std::map<std::string, Pool> pools_ ABSL_GUARDED_BY(mutex_);  // by name
};

}  // namespace medley::ops
