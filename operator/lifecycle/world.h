// What the operator observes of one job at the beginning of a pass. A value: the shell (operator/controllers) reads it
// from caches once, and every decision of the pass is made from it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kube/object.h"
#include "operator/api/resource_pool.h"
#include "operator/records/connection.h"
#include "operator/records/notices.h"
#include "operator/records/observation.h"
#include "operator/records/profile_id.h"

namespace medley::ops::lifecycle {

// A valid ResourcePool that is not terminating, seen from one job.
struct PoolView {
  ResourcePool pool;
  std::optional<double> usd_per_unit_hour;  // to plan with; absent: see `why_unpriced`
  int units = 0;                            // that this job may hold in `zone`, those that it holds included
  std::string bound;                        // what limits `units`, in words
  std::string zone;                         // of that price, which pods are pinned to; empty: they are not pinned
  double paid_usd_per_unit_hour = 0;        // what a unit that the job holds costs now
  int units_where_held = 0;                 // as `units`, in the zone where the job holds units
  std::optional<double> cheaper_usd_per_unit_hour;  // of another zone, when the job keeps a more expensive one
  // The job may keep the units that it holds, and gets no others: a clause that says why, such as "no offering of the
  // pool is available". Empty: it may get others.
  std::string only_held;
  std::string why_unpriced;  // a clause
  // What the job could hold besides `units` if other jobs held nothing of the pool, and these jobs ("namespace/name").
  int held_by_others = 0;
  std::vector<std::string> others;
};

struct PoolsView {
  std::vector<PoolView> pools;              // by name
  std::optional<int64_t> catalog_revision;  // absent: the scheduling service has not answered yet
};

// The profiles of a job's model, by pool.
struct ProfilesView {
  std::map<std::string, kube::ObjectPtr> stored;  // ConfigMaps
  std::map<std::string, ProfileProgress> open;    // of those that are not stored; absent: nothing is known yet
  bool operator==(const ProfilesView&) const = default;
};

// A pod for which a job pays: of any role, profilers included.
struct PaidPod {
  base::WallTime created;
  std::optional<base::WallTime> ended;  // all containers have ended
  // Now; 0 while the scheduler finds no node for the pod, and where the pool has no price.
  double usd_per_hour = 0;
  std::string pool = {};  // whose unit it is; goodput::kCoordinatorPool: the coordinator's
  double part = 1;        // of a unit
  bool held = false;      // it has a pool, and the scheduler has not refused it
  std::optional<base::WallTime> node_at = std::nullopt;  // when it got its node; nullopt: it has none
  bool operator==(const PaidPod&) const = default;
};

struct World {
  base::WallTime now;
  base::SteadyTime steady;
  // The job's pods by name: those that its UID controls, but no profilers, which belong to profiles.
  std::map<std::string, kube::ObjectPtr> pods;
  // Pods of other users that name the job as their owner and copy what the operator has signed for an earlier pod of
  // their name (operator/capacity/signed_pods.h).
  std::vector<kube::ObjectPtr> copies;
  std::map<std::string, PaidPod> paid_pods;  // by UID: `pods`, and profilers that were created for this job
  bool prices_are_known = true;              // false: the scheduling service has not answered yet
  // False while pods that this operator has created may be missing in `pods`.
  bool pods_are_current = true;
  // The other objects with a name that the job uses, by kind: Service, NetworkPolicy, PodDisruptionBudget, and the
  // ConfigMap of the spec. As cached: those with the operator's label, whoever owns them.
  std::map<std::string, kube::ObjectPtr> objects;
  kube::ObjectPtr stored_plan;  // ConfigMap JOB-plan as cached; null: the cache holds none, or the pass reads it anyway
  // For the nodes on which the job's pods run: those with a notice, and those that are not ready.
  std::map<std::string, Notice> node_notices;
  std::set<std::string> nodes_not_ready;
  int64_t quota_changes = 0;                    // how often the quotas of the job's namespace have come to allow more
  std::optional<Connection> connection;         // of the operator to the coordinator
  std::shared_ptr<const Observation> observed;  // the coordinator's latest; null before the first
  int64_t leader_term = 0;                      // of this operator; 0 without leader election
  // The stored status; set only in the first pass of an empty memory.
  kube::Json stored_status;
  // Those that the operator's keys give the job, what a new job gets first; set only while the memory holds none.
  std::vector<JobCredentials> credentials;
};

}  // namespace medley::ops::lifecycle
