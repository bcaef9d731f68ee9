// Pins a pod to the zone whose price was chosen. Pure.
#pragma once

#include <string>

#include "kube/object.h"

namespace medley::ops {

// Adds required node affinity for `topology.kubernetes.io/zone In [zone]` to every term that the pod has already. Does
// nothing for an empty zone, or when the pod's nodeSelector names a zone: the pool or the template decides then.
void PinToZone(const std::string& zone, kube::Json& pod_spec);

}  // namespace medley::ops
