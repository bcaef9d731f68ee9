// What of a node decides whether a pod may go there, and how often it fits. Pure; the filters of
// the Kubernetes scheduler: NodeUnschedulable, NodeName, TaintToleration (NoSchedule and
// NoExecute), NodeAffinity, NodeResourcesFit (the number of pods included).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kube/object.h"
#include "operator/records/notices.h"
#include "operator/capacity/pod_demand.h"

namespace medley::ops {

struct NodeFacts {
  std::string name;
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  Amounts allocatable;
  bool ready = true;             // no condition Ready counts as ready
  std::optional<Notice> notice;  // it will go, or takes nothing more
  bool operator==(const NodeFacts&) const = default;
};

NodeFacts FactsOf(const kube::Object& node);

bool Tolerates(const kube::Json& tolerations, const Taint& taint);
// nodeSelectorTerms: one of them must match; null matches all, an empty list or term nothing.
bool MatchesTerms(const kube::Json& terms, const NodeFacts& node);

// Ready, without notice, and the demand's selector, affinity and tolerations allow it.
bool Allows(const NodeFacts& node, const PodDemand& demand);

// Forbids the pod these nodes, by required node affinity.
void KeepOff(const std::vector<std::string>& nodes, kube::Object& pod);

// How many such pods fit beside `used` (which counts pods under "pods"), resources alone. A node
// that does not say how much cpu, memory or room for pods it has, has enough of it; any other
// resource that it does not name it has not.
int64_t FitsBeside(const NodeFacts& node, const Amounts& used, const Amounts& requests);

}  // namespace medley::ops
