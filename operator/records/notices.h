// Notices: signs that a node, or a pod, is about to be lost. Pure.
//
// A node with a notice offers no units, and the operator moves the members on it to other nodes at once. Clouds and
// autoscalers announce the loss by a taint, a node condition, a cordon or the deletion of the node;
// docs/operate/capacity.md lists the signs and who sets them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/object.h"
#include "operator/api/reasons.h"

namespace medley::ops {

struct Taint {
  std::string key;
  std::string value;
  std::string effect;
  bool operator==(const Taint&) const = default;
};

std::vector<Taint> TaintsOf(const kube::Object& node);

struct Notice {
  enum class Kind {
    kSpot,       // spot interruption: the cloud takes the machine back within seconds or minutes
    kDraining,   // the node is being drained: by an autoscaler, an upgrade, kubectl cordon
    kDisrupted,  // only this pod is affected: evicted, preempted or deleted
    kLost,       // the node has not been ready for a long time
    kSlow        // only this pod is affected: it has been much slower than usual for a long time
  };
  Kind kind = Kind::kDraining;
  bool certain = true;  // false: only a cordon, or slowness, so the pods may stay
  std::string sign;     // "taint aws-node-termination-handler/spot-itn"
  bool operator==(const Notice&) const = default;
};

// The reason of Events and conditions.
Reason ReasonOf(Notice::Kind kind);

// The most urgent sign of the node.
std::optional<Notice> NoticeOf(const kube::Object& node);
// The sign of the pod itself: condition DisruptionTarget.
std::optional<Notice> PodNoticeOf(const kube::Object& pod);

}  // namespace medley::ops
