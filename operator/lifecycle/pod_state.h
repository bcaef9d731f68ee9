// Facts of a job's pod that decisions need, beside those of its worker (operator/api/worker_state.h). Pure.
#pragma once

#include <string>

#include "kube/object.h"
#include "operator/api/resources.h"
#include "operator/api/worker_state.h"

namespace medley::ops {

// A trainer or a server: one of the plan's units, unlike coordinators and profilers.
inline bool IsMember(const kube::Object& pod) {
  const std::string role = pod.label(kRoleLabel);
  return role == "trainer" || role == "server";
}

// True when the scheduler has found no node for the pod.
inline bool IsUnschedulable(const kube::Object& pod) {
  for (const kube::Json& condition : pod.At("/status/conditions")) {
    if (condition.value("type", "") == "PodScheduled" && condition.value("status", "") == "False" &&
        condition.value("reason", "") == "Unschedulable") {
      return true;
    }
  }
  return false;
}

}  // namespace medley::ops
