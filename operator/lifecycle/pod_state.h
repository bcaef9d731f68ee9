// Facts of a job's pod that decisions need. Pure.
#pragma once

#include <string>

#include "kube/object.h"
#include "kube/pod.h"
#include "operator/api/resources.h"

namespace medley::ops {

// Exit code of a worker whose failure a retry will not cure.
inline constexpr int kPermanentFailure = 2;

using kube::HasEnded;

inline bool HasSucceeded(const kube::Object& pod) { return pod.String("/status/phase") == "Succeeded"; }

// A trainer or a server: one of the plan's units, unlike coordinators and profilers.
inline bool IsMember(const kube::Object& pod) {
  const std::string role = pod.label(kRoleLabel);
  return role == "trainer" || role == "server";
}

// The exit code of the first container; -1: it has not terminated. `state`: "state" or "lastState".
inline int ExitCode(const kube::Object& pod, const std::string& state = "state") {
  const kube::Json& code = pod.At("/status/containerStatuses/0/" + state + "/terminated/exitCode");
  return code.is_number_integer() ? code.get<int>() : -1;
}

inline int RestartCount(const kube::Object& pod) {
  const kube::Json& count = pod.At("/status/containerStatuses/0/restartCount");
  return count.is_number_integer() ? count.get<int>() : 0;
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
