// Units that plans reserve, and those that a job may hold. Values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kube/object.h"
#include "operator/api/resource_pool.h"
#include "operator/capacity/pod_demand.h"

namespace medley::ops {

struct JobUnits {
  int units = 0;
  std::string bound;  // what limits them: "free nodes of pool p", "ResourceQuota q: pods"
  // What the job could hold besides if other jobs held nothing of the pool. None when a quota is the bound.
  int held_by_others = 0;
  std::vector<kube::Key> others;  // the jobs that hold these, in order
};

// A job as the owner of units. Two jobs of the same name, one after the other, have different UIDs.
struct UnitOwner {
  kube::Key job;
  std::string uid;
};

enum class Holder { kMember, kProfiler, kCoordinator };

// A pod that exists or will exist, and what it requests: a unit of a plan, the unit on which a profiler measures, or a
// coordinator. Units of the same kind share the pointers, which are not null.
struct PlannedUnit {
  kube::Key pod;
  std::shared_ptr<const ResourcePool> pool;  // null: a coordinator, which holds no unit
  std::shared_ptr<const PodDemand> demand;
  // For the plan in force while the job moves to another one: it counts, but the next plan cannot have it.
  bool until_switch = false;
  Holder holder = Holder::kMember;
};

}  // namespace medley::ops
