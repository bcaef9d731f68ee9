// Signs that a node, or a pod, is about to go. Pure.
//
// A node with a notice offers no units, and what of a job runs there moves at once, before it dies.
// Clouds and autoscalers announce it by a taint, a node condition, a cordon, or the deletion of the
// node; see docs/capacity.md for the list and who sets each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/object.h"

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
    kSpot,       // the cloud takes the machine back, within seconds or minutes
    kDraining,   // somebody empties the node: an autoscaler, an upgrade, kubectl cordon
    kDisrupted,  // this pod alone: evicted, preempted, deleted
    kLost        // the node does not answer for long
  };
  Kind kind = Kind::kDraining;
  bool certain = true;  // false: only a cordon, the pods there may live on
  std::string sign;     // "taint aws-node-termination-handler/spot-itn"
  bool operator==(const Notice&) const = default;
};

// "SpotNotice", "NodeDraining", "PodDisrupted", "NodeLost": reasons of Events and conditions.
const char* ReasonOf(Notice::Kind kind);

// The most urgent of a node's signs.
std::optional<Notice> NoticeOf(const kube::Object& node);
// Of the pod itself: condition DisruptionTarget.
std::optional<Notice> PodNoticeOf(const kube::Object& pod);

}  // namespace medley::ops
