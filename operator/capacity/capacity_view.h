// The cluster as capacity sees it, kept up to date change by change, and the units that a pool has
// and a job may hold.
//
//   free units of a pool = sum over nodes of how often a unit fits beside what is bound there
//
// counted node by node (halves of two nodes make no unit), over nodes that are ready, have no
// notice (notices.h), and that selectors, affinity and taints allow. A job may hold what is free
// and what it holds already, bounded by the pool's limit and the namespace's quotas. An answer
// costs the nodes once after each change, and otherwise only the job's own pods.
//
// Thread-safe. Owner: CapacityWatch, which feeds it; or a test.
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
  std::string bound;  // what bounds them: "free nodes of pool p", "ResourceQuota q: pods"
};

class CapacityView {
 public:
  // True when anything changed that capacity depends on.
  bool PutNode(const kube::Object& node);
  bool EraseNode(const std::string& name);
  bool PutPod(const kube::Object& pod);
  bool ErasePod(const kube::Key& key);
  void PutQuota(const kube::Object& quota);
  void EraseQuota(const kube::Key& key);
  void PutLimitRange(const kube::Object& limit_range);
  void EraseLimitRange(const kube::Key& key);

  // What `pod`, as it would be created, asks for: with the defaults of its namespace.
  PodDemand Demand(const kube::Object& pod) const;

  // For the pool's status. `free` is bounded by the limit, and for pools that an autoscaler fills
  // by that alone.
  PoolUnits UnitsOf(const ResourcePool& pool, const PodDemand& unit) const;
  // Units that the job may hold, those that it holds included, without those on nodes that go.
  JobUnits UnitsFor(const ResourcePool& pool, const PodDemand& unit, const kube::Key& job) const;

  // Where units of the pool can be: for pools of scaling Nodes in the zones of nodes that would hold a unit if they
  // were empty, ready or not and with a notice or without. `unit`: a pod of the pool that is not pinned to a zone.
  PoolZones ZonesOf(const ResourcePool& pool, const PodDemand& unit) const;

  std::optional<Notice> NoticeOf(const std::string& node) const;
  // Not ready; false for a node that is not known.
  bool IsDown(const std::string& node) const;
  // Jobs of which a pod is there.
  std::set<kube::Key> JobsOn(const std::string& node) const;
  // Nodes with a notice that would take such a pod nevertheless, because it tolerates all.
  std::vector<std::string> NodesToAvoid(const PodDemand& unit) const;

 private:
  enum class Role { kNone, kUnit, kProfiler };  // of what jobs may rearrange
  struct PodFacts {
    std::string node;  // bound, or nominated; empty: waits
    PodAmounts amounts;
    QuotaSubject subject;
    kube::Key job;  // empty: none of Medley's
    Role role = Role::kNone;
    std::string pool;
    bool going = false;
    bool operator==(const PodFacts& other) const;
  };
  struct Node {
    std::optional<NodeFacts> facts;  // none: pods were seen before their node
    Amounts used;
    std::set<kube::Key> pods;
  };
  struct PoolCount {
    int units = 0;
    int waiting = 0;  // of them, without a node
  };
  struct Memo {
    uint64_t revision = 0;
    int64_t free = 0;
  };

  static std::optional<PodFacts> FactsOfPod(const kube::Object& pod);  // none: it has ended
  bool ErasePodLocked(const kube::Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count(const PodFacts& pod, int sign) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t FreeOf(const PodDemand& unit) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t OnNodes(const PodDemand& unit, bool empty) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Units of other jobs that go soon: what replaces them may be there already.
  int OthersLeaving(const std::string& pool, const kube::Key& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<const PodFacts*> OwnPods(const kube::Key& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Units on nodes once `own` pods are away, bound or not.
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
  std::set<kube::Key> going_ ABSL_GUARDED_BY(mutex_);      // pods
  std::set<std::string> noticed_ ABSL_GUARDED_BY(mutex_);  // nodes
  std::map<kube::Key, QuotaFacts> quotas_ ABSL_GUARDED_BY(mutex_);
  std::map<kube::Key, kube::Object> limit_ranges_ ABSL_GUARDED_BY(mutex_);
  mutable std::map<std::string, Memo> memo_ ABSL_GUARDED_BY(mutex_);  // by fingerprint
};

}  // namespace medley::ops
