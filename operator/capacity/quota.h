// How many further units the ResourceQuotas of a namespace allow. Pure.
//
// For each quota whose scopes match the pod, admission refuses the pod when status.used plus the pod exceeds
// status.hard. The controller that updates status.used lags behind, so the result is an upper bound: the API server may
// still refuse a pod (403, "exceeded quota"). Sources: k8s.io/apiserver quota/v1 and the podEvaluator in
// kubernetes/pkg/quota/v1/evaluator/core.
#pragma once

#include <string>
#include <vector>

#include "kube/object.h"
#include "operator/capacity/pod_demand.h"

namespace medley::ops {

struct QuotaFacts {
  kube::Key key;
  Amounts hard;  // by the quota's names: requests.cpu, pods, ...
  Amounts used;
  // matchExpressions; an entry of spec.scopes becomes one with operator Exists.
  kube::Json scopes = kube::Json::array();
  bool operator==(const QuotaFacts&) const = default;
};

QuotaFacts QuotaFactsOf(const kube::Object& quota);

// The properties of a pod that scopes select by.
struct QuotaSubject {
  std::string priority_class;
  bool terminating = false;
  bool best_effort = false;
};
QuotaSubject SubjectOf(const PodDemand& demand);
bool CountsAgainst(const QuotaFacts& quota, const QuotaSubject& pod);

// How much a pod uses of the quota's resource `name`; 0 when the name does not concern pods.
int64_t QuotaUsage(std::string_view name, const PodAmounts& pod);

struct QuotaRoom {
  int64_t units = 1'000'000'000;
  std::string bound;  // "ResourceQuota q: requests.cpu"; empty: no limit
};

// `own`: what the pods that the units replace use, by the quota's names; it counts as free.
QuotaRoom RoomOf(const QuotaFacts& quota, const PodDemand& unit, const Amounts& own);

}  // namespace medley::ops
