// Whether a pod asks a node for nothing beyond a unit of its pool. Pure.
//
// A pod of an autoscaled pool that finds no node closes the pool to all jobs for a while (pool_outages.h). A pod whose
// template asks for more (another node selector, a volume, a sidecar, a scheduler of its own, ...) may find no node
// where every other pod does, so only pods that ask for the unit alone may say that the pool has no nodes. What is not
// known to be harmless counts as a need.
#pragma once

#include <string>

#include "kube/object.h"
#include "operator/api/resource_pool.h"

namespace medley::ops {

// What the pod needs of a node beside resources, node selector and node affinity, as a hash; "": nothing.
// TrimPod keeps it of pods that wait for a node, as the annotation kNeedsAnnotation, instead of those fields.
std::string OtherNeedsOf(const kube::Object& pod);

// `pod`: as cached, without a node. `zone`: to which the plan has pinned it; empty: none.
bool AsksOnlyForUnit(const kube::Object& pod, const ResourcePool& pool, const std::string& zone);

}  // namespace medley::ops
