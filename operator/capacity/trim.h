// Removes from cached objects all fields that the operator does not read. Thread-safe.
//
// A pod of a real cluster takes tens of kilobytes as JSON in memory. Of other workloads' pods the operator reads only
// the node and the requests; of Medley's own pods also the status, the owner and the coordinator's address,
// and until they have started what StartFailureOf needs.
#pragma once

#include "kube/object.h"
#include "operator/capacity/signed_pods.h"

namespace medley::ops {

// Does not change what AmountsOf (pod_demand.h) returns. `own`: pods that are not the operator's, and name a job as
// their owner, get the annotation kUnsignedAnnotation; null: none gets it.
void TrimPod(kube::Object& pod, SignedPods* own = nullptr);
void TrimNode(kube::Object& node);
// For objects that the operator writes for a job: the spec, and what tells whose it is.
void TrimOwn(kube::Object& object);
// Trims by kind; the operator's informers apply it to every object.
void Trim(SignedPods& own, const kube::Resource& resource, kube::Object& object);
// Removes managedFields and kubectl's last-applied-configuration.
void TrimAny(kube::Object& object);

}  // namespace medley::ops
