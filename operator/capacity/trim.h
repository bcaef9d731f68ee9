// What the caches keep of objects that are many: only what the operator reads. Pure.
//
// A pod of a real cluster takes tens of kilobytes as JSON in memory; of others' pods only place and
// requests matter, of Medley's own also state, owner and the coordinator that they were made for.
#pragma once

#include "kube/object.h"

namespace medley::ops {

// The amounts of resources (pod_demand.h) are the same before and after.
void TrimPod(kube::Object& pod);
void TrimNode(kube::Object& node);
// By kind: the transform of the operator's informers.
void Trim(const kube::Resource& resource, kube::Object& object);
// managedFields and what kubectl apply remembers: nobody reads them here.
void TrimAny(kube::Object& object);

}  // namespace medley::ops
