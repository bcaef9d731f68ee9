// The nodes, pods and quotas of the cluster, updated change by change, the units that plans have reserved, and the
// units computed from them: those that a pool has, and those that a job may hold.
//
// A unit of a plan counts from the moment in which it is reserved until it is released, whether its pod exists or not:
// against the limit of its pool, against the quotas of its namespace, and on a node that has room for it. So two jobs
// never get the same unit. The pods of a plan exist beside those of the plan before it, until the switch; so a job may
// hold what is free, and what it holds already and can keep: units of its plan in the same pool and zone that are not
// on a node with a notice.
//
// A profiler holds a unit of its pool in the same way, from before its pod is created until the pod has ended. A
// coordinator holds no unit, but room on a node and in the quotas. Only a quota refuses it: where no node has room for
// it, an autoscaler may bring one.
//
//   free units of a pool = sum over nodes of how many units fit beside the pods on the node
//
// The sum is over nodes that are ready, have no notice (notices.h) and are allowed by selectors, affinity and taints. A
// unit must fit on one node, so half a unit on each of two nodes counts as none.
//
// Whose a pod is, only its controller says, a TrainingJob whose UID is known, where the operator has signed the pod, or
// the plan that has reserved a pod of this name. Labels, which every editor of a pod may change, are no evidence
// (TrimPod restores them), and neither is a controller that the creator of a pod has written.
//
// Thread-safe. Owner: CapacityWatch, which updates it, or a test.
#pragma once

#include <absl/status/status.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "operator/api/pool_status.h"
#include "operator/api/pool_zones.h"
#include "operator/api/resource_pool.h"
#include "operator/capacity/node_facts.h"
#include "operator/capacity/node_room.h"
#include "operator/capacity/planned_unit.h"
#include "operator/capacity/quota.h"

namespace medley::ops {

class CapacityView {
 public:
  // The Put and Erase functions return true when something changed that capacity depends on.
  bool PutNode(const kube::Object& node);
  bool EraseNode(const std::string& name);
  bool PutPod(const kube::Object& pod);  // as TrimPod leaves it
  bool ErasePod(const kube::Key& key);
  // From this call on, pods in `ns` (empty: in all namespaces) count as those of a job only while PutJob has named it.
  // The jobs of other namespaces are those of another operator; of them the controller alone counts.
  void ExpectJobs(const std::string& ns);
  void PutJob(const kube::Key& job, const std::string& uid);
  // Pods of the job that still exist count until they have ended.
  void EraseJob(const kube::Key& job);
  // The same for quotas: true when they may allow more.
  bool PutQuota(const kube::Object& quota);
  void EraseQuota(const kube::Key& key);
  // How often quotas of the namespace have come to allow more.
  int64_t QuotaChanges(const std::string& ns) const;
  void PutLimitRange(const kube::Object& limit_range);
  void EraseLimitRange(const kube::Key& key);

  // What `pod` will request once it is created, with the defaults of its namespace's LimitRanges.
  PodDemand Demand(const kube::Object& pod) const;

  // For the pool's status. `free` is at most what the pool's limit leaves; in an autoscaled pool it is exactly that.
  PoolUnits UnitsOf(const ResourcePool& pool, const PodDemand& unit) const;
  // Units that the job's next plan may hold, including those that the job holds and can keep.
  JobUnits UnitsFor(const ResourcePool& pool, const PodDemand& unit, const kube::Key& job) const;

  // The zones in which units of the pool can be. For pools of scaling Nodes these are the zones of the nodes that could
  // hold a unit if they were empty, even if they are not ready or have a notice. `unit`: a pod of the pool that is not
  // pinned to a zone.
  PoolZones ZonesOf(const ResourcePool& pool, const PodDemand& unit) const;

  // Reserves units instead of those that the owner has reserved before, all or none. Errors:
  // ResourceExhausted: other jobs have got units since they were counted. FailedPrecondition: the units are free only
  // once the pods of the job's present plan are deleted.
  absl::Status Reserve(const UnitOwner& owner, const std::vector<PlannedUnit>& units);
  // As Reserve for a plan that is already in force: it counts even if it is over a limit.
  void Restore(const UnitOwner& owner, const std::vector<PlannedUnit>& units);
  // Only what pods of the job hold counts from now on.
  void Release(const std::string& uid);
  // The same for whatever jobs of this name have reserved.
  void ReleaseJob(const kube::Key& job);
  // True when something may have become free since the last call: units, room on nodes, or quotas.
  bool TakeFreed();

  // The namespaces of the pods that hold units of the pool.
  std::set<std::string> NamespacesOn(const std::string& pool) const;

  std::map<std::string, std::string> LabelsOf(const std::string& node) const;  // empty: the node is unknown
  std::optional<Notice> NoticeOf(const std::string& node) const;
  // True for a node that is not ready; false for an unknown node.
  bool IsDown(const std::string& node) const;
  // Jobs with a pod on the node.
  std::set<kube::Key> JobsOn(const std::string& node) const;
  // Nodes with a notice on which the scheduler could still place such a pod, because its tolerations cover the taint.
  std::vector<std::string> NodesToAvoid(const PodDemand& unit) const;

 private:
  // What the pod says of itself; its controller is a TrainingJob.
  struct Claim {
    kube::Key job;
    std::string uid;
    std::string pool;
    std::string zone;
    bool is_member = false;
    bool is_unit = false;
    bool is_signed = true;
    bool operator==(const Claim&) const = default;
  };
  struct PodFacts {
    std::string node;  // bound or nominated; empty: the pod waits for a node
    PodAmounts amounts;
    QuotaSubject subject;
    kube::Key job;           // empty: the pod does not belong to a TrainingJob
    bool is_member = false;  // a trainer or a server: a later plan of the job may have its unit
    bool is_unit = false;    // a member or a profiler
    std::string pool;
    std::string zone;  // that the pod is pinned to; empty: any
    bool terminating = false;
    bool exists = true;                       // false: only reserved
    bool until_switch = false;                // PlannedUnit::until_switch; of reserved units
    std::shared_ptr<const PodDemand> demand;  // of a pod that claims a job and waits for a node
    std::shared_ptr<const Claim> claim;       // null: none, or only reserved
    bool operator==(const PodFacts& other) const;
  };
  struct PoolCount {
    int units = 0;     // whose pods exist
    int reserved = 0;  // whose pods do not exist
    std::map<kube::Key, int> by_job;
  };
  using Units = std::map<kube::Key, PodFacts>;  // by pod

  static std::optional<PodFacts> FactsOfPod(const kube::Object& pod);  // nullopt: the pod has ended
  static PodFacts FactsOf(const UnitOwner& owner, const PlannedUnit& unit);
  // Fills in whose the pod is: as its plan says, or as the pod claims where that is believed.
  void Identify(const kube::Key& key, PodFacts& facts) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsBelieved(const Claim& claim) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For a pod that exists, when what Identify depends on has changed.
  void IdentifyAgain(const kube::Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Insert(const kube::Key& key, PodFacts facts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The pod has ended or is deleted; false: it did not exist.
  bool EraseExisting(const kube::Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool LosesUnits(const Units& before, const Units& now);
  // False: the pod is not known.
  bool Erase(const kube::Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds `sign` to the counts of the pod's pool.
  void Count(const PodFacts& pod, int sign) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const PoolCount& CountOf(const std::string& pool) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // If the pod does not exist and is reserved.
  void InsertReserved(const kube::Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReplaceReserved(const std::string& uid, Units units) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Own units that the job's next plan may have instead of further ones, if it wants such units of the pool.
  std::vector<kube::Key> Movable(const ResourcePool& pool, const PodDemand& unit, const kube::Key& job) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BoundByQuotas(const PodDemand& unit, const kube::Key& job, const std::vector<kube::Key>& movable,
                     JobUnits& units) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Own units of the pool (empty: of any) that exist and that the new plan does not have: those of the plan before.
  int Leaving(const UnitOwner& owner, const std::string& pool) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckReserved(const UnitOwner& owner, const std::vector<PlannedUnit>& units) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // "": the quotas admit the pods that are to be created.
  std::string ExceededQuota(const std::string& ns, const PodDemand& unit) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable base::Mutex mutex_;
  mutable NodeRoom room_ ABSL_GUARDED_BY(mutex_);
  Units pods_ ABSL_GUARDED_BY(mutex_);  // with those that are only reserved
  std::map<kube::Key, std::set<kube::Key>> job_pods_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, PoolCount> pools_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Units> reserved_ ABSL_GUARDED_BY(mutex_);         // by UID of the job
  std::map<kube::Key, std::string> reserved_by_ ABSL_GUARDED_BY(mutex_);  // pod -> UID
  std::set<kube::Key> not_created_ ABSL_GUARDED_BY(mutex_);               // pods that are only reserved
  std::optional<std::string> expected_ ABSL_GUARDED_BY(mutex_);           // ExpectJobs
  std::map<kube::Key, std::string> job_uids_ ABSL_GUARDED_BY(mutex_);
  std::set<kube::Key> erased_jobs_ ABSL_GUARDED_BY(mutex_);  // of job_uids_: erased, and some pods still exist
  std::set<kube::Key> unbelieved_ ABSL_GUARDED_BY(mutex_);   // pods whose claim is not believed
  bool freed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<kube::Key, QuotaFacts> quotas_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> quota_changes_ ABSL_GUARDED_BY(mutex_);  // by namespace
  std::map<kube::Key, kube::Object> limit_ranges_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::ops
