// Facts about a pod that several folders need. Pure.
#pragma once

#include "kube/object.h"

namespace medley::kube {

// True when the pod's phase is Succeeded or Failed: its containers have ended and are not started again.
inline bool HasEnded(const Object& pod) {
  const std::string phase = pod.String("/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace medley::kube
