// What a pod asks of a node and of quotas: the rules of the Kubernetes scheduler. Pure.
//
//   request = max(containers + sidecars, the largest init container with the sidecars before it)
//             + overhead
//
// A pod-level request stands in for the containers' sum; a container that names only a limit
// requests that. Source: k8s.io/component-helpers/resource (PodRequests, PodLimits), KEP-753
// (sidecars), KEP-2837 (pod-level resources), KEP-1287 (resize: the greater of wanted and
// allocated).
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

// What admission adds to containers that do not say: `default` and `defaultRequest` of a
// LimitRange's entries of type Container. Overhead of a RuntimeClass is not foreseen.
void ApplyLimitRange(const kube::Object& limit_range, kube::Object& pod);

struct PodDemand {
  PodAmounts amounts;
  kube::Json node_selector = kube::Json::object();
  kube::Json node_terms;  // nodeSelectorTerms of the required node affinity; null: none
  kube::Json tolerations = kube::Json::array();
  std::string node_name;       // it wants this node alone
  std::string priority_class;  // for scopes of quotas
  bool terminating = false;    // has activeDeadlineSeconds
  bool best_effort = false;    // names no cpu and no memory at all
  // Equal for demands that fit in the same places.
  std::string Fingerprint() const;
};

PodDemand DemandOf(const kube::Object& pod);

}  // namespace medley::ops
