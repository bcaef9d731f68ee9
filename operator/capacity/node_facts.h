// The properties of a node that decide whether a pod may run on it and how many such pods fit. Pure. Follows these
// filters of the Kubernetes scheduler: NodeUnschedulable, NodeName, TaintToleration (NoSchedule and NoExecute),
// NodeAffinity, NodeResourcesFit (including the number of pods).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kube/object.h"
#include "operator/capacity/pod_demand.h"
#include "operator/records/notices.h"

namespace medley::ops {

// "No limit": more units than any node or quota holds, and small enough that sums of it do not overflow.
inline constexpr int64_t kUnbounded = 1'000'000'000;

struct NodeFacts {
  std::string name;
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  Amounts allocatable;
  bool ready = true;             // a node without a condition Ready counts as ready
  std::optional<Notice> notice;  // the node is about to be lost, or takes no further pods
  bool operator==(const NodeFacts&) const = default;
};

NodeFacts FactsOf(const kube::Object& node);

bool Tolerates(const kube::Json& tolerations, const Taint& taint);
// `terms`: nodeSelectorTerms, of which one must match. null matches every node; an empty list or term matches none.
bool MatchesTerms(const kube::Json& terms, const NodeFacts& node);

// True when the node is ready, has no notice, and the demand's selector, affinity and tolerations allow it.
bool Allows(const NodeFacts& node, const PodDemand& demand);

// Keeps the pod off these nodes by required node affinity.
void KeepOff(const std::vector<std::string>& nodes, kube::Object& pod);

// How many pods with these requests fit beside `used` (which counts pods under "pods"); only resources are compared. A
// node that does not report its cpu, memory or number of pods has enough of it; it has none of any other resource that
// it does not report.
int64_t FitsBeside(const NodeFacts& node, const Amounts& used, const Amounts& requests);

}  // namespace medley::ops
