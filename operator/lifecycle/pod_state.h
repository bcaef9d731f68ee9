// Facts of a job's pod that decisions need, beside those of its worker (operator/api/worker_state.h). Pure.
#pragma once

#include <string>

#include "kube/object.h"
#include "operator/api/resources.h"
#include "operator/api/worker_state.h"
#include "operator/records/notices.h"

namespace medley::ops {

// A trainer or a server: one of the plan's units, unlike coordinators and profilers.
inline bool IsMember(const kube::Object& pod) {
  const std::string role = pod.label(kRoleLabel);
  return role == "trainer" || role == "server";
}

// True when the scheduler has found no node for the pod. A pod that has run had a node, whatever its conditions say.
inline bool IsUnschedulable(const kube::Object& pod) {
  const std::string phase = pod.String("/status/phase");
  if (!phase.empty() && phase != "Pending") return false;
  for (const kube::Json& condition : pod.At("/status/conditions")) {
    if (condition.value("type", "") == "PodScheduled" && condition.value("status", "") == "False" &&
        condition.value("reason", "") == "Unschedulable") {
      return true;
    }
  }
  return false;
}

// True when the pod failed because of its node or of another client: eviction, preemption, drain, shutdown or loss of
// the node. False when the program itself crashed, ran out of memory or used more disk than it may.
inline bool WasDisrupted(const kube::Object& pod) {
  const std::string reason = pod.String("/status/reason");
  const std::string message = pod.String("/status/message");
  // The kubelet's messages about a pod that exceeds its own limit of ephemeral storage.
  const bool own_limit = message.find("exceeds the ") != std::string::npos ||  //
                         message.find("exceeded its ") != std::string::npos;
  if (reason == "Evicted" && own_limit) return false;
  if (PodNoticeOf(pod)) return true;
  for (const char* cause : {"Evicted", "NodeLost", "NodeShutdown", "Preempting", "Shutdown", "Terminated"}) {
    if (reason == cause) return true;
  }
  return false;
}

// What disrupted the pod, in a few words. Precondition: WasDisrupted.
inline std::string DisruptionOf(const kube::Object& pod) {
  const std::string reason = pod.String("/status/reason");
  if (const auto notice = PodNoticeOf(pod)) return notice->sign;
  return reason;
}

// True when the worker's container was started again because its node had been started again: the container runtime
// does not know then how the process ended.
inline bool WasRebooted(const kube::Object& pod) {
  const kube::Object worker = WorkerStatus(pod);
  return worker.String("/lastState/terminated/reason") == "Unknown" && ExitCode(pod, "lastState") == 255;
}

}  // namespace medley::ops
