// How many units the ResourceQuotas of a namespace leave. Pure.
//
// Admission compares status.used and the new pod with status.hard, per quota whose scopes match the
// pod. The controller that counts `used` lags behind, so what is left is an upper bound: a create
// may still be refused (403, "exceeded quota"). Source: k8s.io/apiserver quota/v1,
// kubernetes/pkg/quota/v1/evaluator/core (podEvaluator).
#pragma once

#include <string>
#include <vector>

#include "kube/object.h"
#include "operator/capacity/pod_demand.h"

namespace medley::ops {

struct QuotaFacts {
  kube::Key key;
  Amounts hard;  // by the quota's own names: requests.cpu, pods, ...
  Amounts used;
  kube::Json scopes = kube::Json::array();  // matchExpressions; those of spec.scopes with Exists
  bool operator==(const QuotaFacts&) const = default;
};

QuotaFacts QuotaFactsOf(const kube::Object& quota);

// What scopes ask of a pod.
struct QuotaSubject {
  std::string priority_class;
  bool terminating = false;
  bool best_effort = false;
};
bool CountsAgainst(const QuotaFacts& quota, const QuotaSubject& pod);

// What a pod counts under the quota's name; 0 for names that count other things.
int64_t QuotaUsage(std::string_view name, const PodAmounts& pod);

struct QuotaRoom {
  int64_t units = 1'000'000'000;
  std::string bound;  // "ResourceQuota q: requests.cpu"; empty: not bounded
};

// `own`: sum over the pods that the units replace, by the quota's names; they are given back.
QuotaRoom RoomOf(const QuotaFacts& quota, const PodDemand& unit, const Amounts& own);

}  // namespace medley::ops
