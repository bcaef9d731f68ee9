// What a pod's annotations ask of the process node, so that one machine stands for unlike machines and links. They may
// change while the pod runs. A real cluster ignores the node's own annotations. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <optional>

#include "kube/object.h"
#include "localcluster/node/emulated_network.h"

namespace medley::localcluster {

// A quantity of cores above 0, for each container of the pod in place of its limit.
inline constexpr char kCpuAnnotation[] = "run.medley.dev/cpu";
// A duration ("20ms") that each message to the pod and from it takes longer.
inline constexpr char kLinkDelayAnnotation[] = "run.medley.dev/link-delay";
// 0 to 1: each delay is drawn evenly from delay * (1 - spread, 1 + spread).
inline constexpr char kLinkDelaySpreadAnnotation[] = "run.medley.dev/link-delay-spread";
// Quantities of bits per second above 0, as the bandwidth plugin of CNI understands them.
inline constexpr char kIngressAnnotation[] = "kubernetes.io/ingress-bandwidth";
inline constexpr char kEgressAnnotation[] = "kubernetes.io/egress-bandwidth";

struct Emulation {
  std::optional<double> cores;
  CardState card;
  bool operator==(const Emulation&) const = default;
};

// Errors: InvalidArgument names the annotation and its value. The longest delay is 10 s.
absl::StatusOr<Emulation> EmulationOf(const kube::Object& pod);

}  // namespace medley::localcluster
