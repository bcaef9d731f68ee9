// The nodes, pods and quotas of the cluster, updated change by change, and the units computed from them: those that a
// pool has, and those that a job may hold.
//
//   free units of a pool = sum over nodes of how many units fit beside the pods bound to the node
//
// The sum is over nodes that are ready, have no notice (notices.h) and are allowed by selectors, affinity and taints. A
// unit must fit on one node, so half a unit on each of two nodes counts as none. A job may hold the free units and
// those that it holds already, at most the pool's limit and what the namespace's quotas allow. After a change the first
// answer visits all nodes; later answers visit only the job's own pods.
//
// Thread-safe. Owner: CapacityWatch, which updates it, or a test.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "common/base/mutex.h"
#include "operator/api/pool_status.h"
#include "operator/api/pool_zones.h"
#include "operator/api/resource_pool.h"
#include "operator/capacity/node_facts.h"
#include "operator/capacity/quota.h"

namespace medley::ops {

struct JobUnits {
  int units = 0;
  std::string bound;  // what limits them: "free nodes of pool p", "ResourceQuota q: pods"
};

class CapacityView {
 public:
  // The Put and Erase functions return true when something changed that capacity depends on.
  bool PutNode(const kube::Object& node);
  bool EraseNode(const std::string& name);
  bool PutPod(const kube::Object& pod);
  bool ErasePod(const kube::Key& key);
  void PutQuota(const kube::Object& quota);
  void EraseQuota(const kube::Key& key);
  void PutLimitRange(const kube::Object& limit_range);
  void EraseLimitRange(const kube::Key& key);

  // What `pod` will request once it is created, with the defaults of its namespace's LimitRanges.
  PodDemand Demand(const kube::Object& pod) const;

  // For the pool's status. `free` is at most what the pool's limit leaves; in an autoscaled pool it is exactly that.
  PoolUnits UnitsOf(const ResourcePool& pool, const PodDemand& unit) const;
  // Units that the job may hold, including those that it holds, without those on nodes with a notice.
  JobUnits UnitsFor(const ResourcePool& pool, const PodDemand& unit, const kube::Key& job) const;

  // The zones in which units of the pool can be. For pools of scaling Nodes these are the zones of the nodes that could
  // hold a unit if they were empty, even if they are not ready or have a notice. `unit`: a pod of the pool that is not
  // pinned to a zone.
  PoolZones ZonesOf(const ResourcePool& pool, const PodDemand& unit) const;

  std::optional<Notice> NoticeOf(const std::string& node) const;
  // True for a node that is not ready; false for an unknown node.
  bool IsDown(const std::string& node) const;
  // Jobs with a pod on the node.
  std::set<kube::Key> JobsOn(const std::string& node) const;
  // Nodes with a notice on which the scheduler could still place such a pod, because its tolerations cover the taint.
  std::vector<std::string> NodesToAvoid(const PodDemand& unit) const;

 private:
  enum class Role { kNone, kUnit, kProfiler };  // of pods whose resources a job may reassign
  struct PodFacts {
    std::string node;  // bound or nominated; empty: the pod waits for a node
    PodAmounts amounts;
    QuotaSubject subject;
    kube::Key job;  // empty: the pod does not belong to a TrainingJob
    Role role = Role::kNone;
    std::string pool;
    bool terminating = false;
    bool operator==(const PodFacts& other) const;
  };
  struct Node {
    std::optional<NodeFacts> facts;  // absent: the view has seen pods of the node, but not the node
    Amounts used;
    std::set<kube::Key> pods;
  };
  struct PoolCount {
    int units = 0;
    int waiting = 0;  // those without a node
  };
  struct CachedFree {
    uint64_t revision = 0;
    int64_t free = 0;
  };

  static std::optional<PodFacts> FactsOfPod(const kube::Object& pod);  // nullopt: the pod has ended
  bool ErasePodLocked(const kube::Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count(const PodFacts& pod, int sign) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t FreeOf(const PodDemand& unit) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t OnNodes(const PodDemand& unit, bool empty) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Units of other jobs whose pods are terminating or on nodes with a notice. They do not count against the pool's
  // limit, because their replacements may exist already.
  int UnitsOthersWillRelease(const std::string& pool, const kube::Key& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<const PodFacts*> OwnPods(const kube::Key& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Free units on nodes if the `own` pods, bound or not, were deleted.
  int64_t FreeWithout(const PodDemand& unit, const std::vector<const PodFacts*>& own) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BoundByQuotas(const PodDemand& unit, const std::string& ns, const std::vector<const PodFacts*>& own,
                     JobUnits& units) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable base::Mutex mutex_;
  uint64_t revision_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<std::string, Node> nodes_ ABSL_GUARDED_BY(mutex_);
  std::map<kube::Key, PodFacts> pods_ ABSL_GUARDED_BY(mutex_);
  std::map<kube::Key, std::set<kube::Key>> job_pods_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, PoolCount> pools_ ABSL_GUARDED_BY(mutex_);
  std::set<kube::Key> terminating_ ABSL_GUARDED_BY(mutex_);  // pods
  std::set<std::string> noticed_ ABSL_GUARDED_BY(mutex_);    // nodes
  std::map<kube::Key, QuotaFacts> quotas_ ABSL_GUARDED_BY(mutex_);
  std::map<kube::Key, kube::Object> limit_ranges_ ABSL_GUARDED_BY(mutex_);
  mutable std::map<std::string, CachedFree> cached_free_ ABSL_GUARDED_BY(mutex_);  // by PodDemand::Fingerprint
};

}  // namespace medley::ops
