// What the passes ask of a pod of a job. Pure.
#pragma once

#include <string>

#include "kube/object.h"
#include "kube/pod.h"
#include "operator/api/resources.h"

namespace medley::ops {

using kube::HasEnded;

// A trainer or a server: one of the plan's units, unlike coordinators and profilers.
inline bool IsMember(const kube::Object& pod) {
  const std::string role = pod.label(kRoleLabel);
  return role == "trainer" || role == "server";
}

}  // namespace medley::ops
