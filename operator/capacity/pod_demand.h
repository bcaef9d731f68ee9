// What a pod requests from a node and from quotas, by the rules of the Kubernetes scheduler. Pure.
//
//   request = max(containers + sidecars, the largest init container with the sidecars before it)
//             + overhead
//
// A pod-level request replaces the sum over the containers. A container that has only a limit requests that amount.
// Sources: k8s.io/component-helpers/resource (PodRequests, PodLimits), KEP-753 (sidecars), KEP-2837 (pod-level
// resources), KEP-1287 (resize: the larger of the desired and the allocated amount).
#pragma once

#include <string>
#include <vector>

#include "kube/object.h"
#include "operator/capacity/amounts.h"

namespace medley::ops {

struct PodAmounts {
  Amounts requests;
  Amounts limits;
  bool operator==(const PodAmounts&) const = default;
};

PodAmounts AmountsOf(const kube::Object& pod);

// Applies the defaults that admission adds to containers without requests or limits: `default` and `defaultRequest` of
// a LimitRange's entries of type Container. Does not add the overhead of a RuntimeClass.
void ApplyLimitRange(const kube::Object& limit_range, kube::Object& pod);

struct PodDemand {
  PodAmounts amounts;
  kube::Json node_selector = kube::Json::object();
  kube::Json node_terms;  // nodeSelectorTerms of the required node affinity; null: none
  kube::Json tolerations = kube::Json::array();
  std::string node_name;       // set when the pod may run on this node only
  std::string priority_class;  // for the scopes of quotas
  bool terminating = false;    // quota scope Terminating: the pod has activeDeadlineSeconds
  bool best_effort = false;    // quota scope BestEffort: no requests or limits of cpu or memory
  // Equal for demands that fit on the same nodes.
  std::string Fingerprint() const;
};

PodDemand DemandOf(const kube::Object& pod);

// The one zone that the pod is pinned to, by its selector or by every term of its affinity; empty: none.
std::string PinnedZone(const PodDemand& demand);

}  // namespace medley::ops
