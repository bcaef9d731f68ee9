// Which replicas of a stage form groups that add within each group first.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/model/execution_plan.h"
#include "common/model/sync.h"
#include "common/model/synchronisation.h"

namespace medley::sched {

// The levels of a hierarchy among the replicas of a stage (Sync::hierarchy, by model::StageDeviceId). `first`: the
// units that the stages before have of each pool.
//   kAuto: in a stage of n >= 4 replicas, groups of about sqrt(n) (Wang, "Hierarchical Heterogeneous Cluster Systems
//          for Scalable Distributed Deep Learning", section 4.2), none of which has devices of two pools;
//   kPool: one group for each pool;
//   kLinks: as kAuto, because the units of a pool are equal and so are their links.
// Empty where one group would hold all replicas, or each replica would be a group. Pure.
std::vector<model::HierarchyLevel> MakeHierarchy(model::Grouping grouping, const std::vector<model::Group>& pools,
                                                 const std::map<std::string, int>& first);

}  // namespace medley::sched
