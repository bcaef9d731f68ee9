#include "operator/records/notices.h"
#include "kube/json_access.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace medley::ops {
namespace {

using Kind = Notice::Kind;

struct Sign {
  std::string_view key;
  Kind kind;
};

constexpr std::array kTaints = {
    // AWS node termination handler.
    Sign{"aws-node-termination-handler/spot-itn", Kind::kSpot},
    Sign{"aws-node-termination-handler/rebalance-recommendation", Kind::kSpot},
    Sign{"aws-node-termination-handler/scheduled-maintenance", Kind::kDraining},
    Sign{"aws-node-termination-handler/asg-lifecycle-termination", Kind::kDraining},
    // GKE; spot machines then have 15 s left.
    Sign{"cloud.google.com/impending-node-termination", Kind::kSpot},
    // AKS node auto-drain.
    Sign{"remediator.kubernetes.azure.com/unschedulable", Kind::kSpot},
    // Karpenter, v1 and earlier.
    Sign{"karpenter.sh/disrupted", Kind::kDraining},
    Sign{"karpenter.sh/disruption", Kind::kDraining},
    // Cluster autoscaler.
    Sign{"ToBeDeletedByClusterAutoscaler", Kind::kDraining},
    // Kubernetes itself.
    Sign{"node.cloudprovider.kubernetes.io/shutdown", Kind::kDraining},
    Sign{"node.kubernetes.io/out-of-service", Kind::kDraining},
};

// AKS node problem detector, from Azure's scheduled events. A freeze is not listed: it lasts only seconds.
constexpr std::array kConditions = {
    Sign{"PreemptScheduled", Kind::kSpot},
    Sign{"TerminateScheduled", Kind::kSpot},
    Sign{"RedeployScheduled", Kind::kDraining},
    Sign{"RebootScheduled", Kind::kDraining},
};

constexpr std::string_view kCordon = "node.kubernetes.io/unschedulable";
// Handlers of Azure's scheduled events use taints whose keys contain this.
constexpr std::string_view kScheduledEvents = "scheduledevent";

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

std::optional<Kind> TaintKind(const Taint& taint) {
  for (const Sign& sign : kTaints) {
    if (taint.key == sign.key) return sign.kind;
  }
  if (Lower(taint.key).find(kScheduledEvents) != std::string::npos) return Kind::kSpot;
  return std::nullopt;
}

std::optional<Kind> ConditionKind(const std::string& type) {
  for (const Sign& sign : kConditions) {
    if (type == sign.key) return sign.kind;
  }
  return std::nullopt;
}

}  // namespace

Reason ReasonOf(Kind kind) {
  switch (kind) {
    case Kind::kSpot:
      return Reason::kSpotNotice;
    case Kind::kDraining:
      return Reason::kNodeDraining;
    case Kind::kLost:
      return Reason::kNodeLost;
    case Kind::kSlow:
      return Reason::kTrainerSlow;
    case Kind::kDisrupted:
      break;
  }
  return Reason::kPodDisrupted;
}

std::vector<Taint> TaintsOf(const kube::Object& node) {
  std::vector<Taint> taints;
  for (const kube::Json& taint : node.At("/spec/taints")) {
    taints.push_back(
        {kube::GetString(taint, "key"), kube::GetString(taint, "value"), kube::GetString(taint, "effect")});
  }
  return taints;
}

std::optional<Notice> NoticeOf(const kube::Object& node) {
  std::optional<Notice> found;
  const auto take = [&](Notice notice) {
    const bool worse =
        !found || (notice.certain && !found->certain) || (notice.kind == Kind::kSpot && found->kind != Kind::kSpot);
    if (worse) found = std::move(notice);
  };
  if (node.deleting()) take({Kind::kDraining, true, "its deletion"});
  for (const Taint& taint : TaintsOf(node)) {
    if (const auto kind = TaintKind(taint)) take({*kind, true, "taint " + taint.key});
    if (taint.key == kCordon) take({Kind::kDraining, false, "its cordon"});
  }
  for (const kube::Json& condition : node.At("/status/conditions")) {
    const std::string type = kube::GetString(condition, "type");
    if (kube::GetString(condition, "status") != "True") continue;
    if (const auto kind = ConditionKind(type)) take({*kind, true, "condition " + type});
  }
  if (node.At("/spec/unschedulable") == true) take({Kind::kDraining, false, "its cordon"});
  return found;
}

std::optional<Notice> PodNoticeOf(const kube::Object& pod) {
  for (const kube::Json& condition : pod.At("/status/conditions")) {
    if (kube::GetString(condition, "type") != "DisruptionTarget" || kube::GetString(condition, "status") != "True") {
      continue;
    }
    const std::string reason = kube::GetString(condition, "reason");
    return Notice{Kind::kDisrupted, true,
                  reason.empty() ? "condition DisruptionTarget" : "DisruptionTarget: " + reason};
  }
  return std::nullopt;
}

}  // namespace medley::ops
