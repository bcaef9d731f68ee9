// The user's pod template laid over a pod: Kubernetes' strategic merge, as far as pods need it.
// Pure.
//
// Objects merge field by field and null removes, as in RFC 7386. Lists with a merge key merge entry
// by entry (containers, initContainers, volumes, env, imagePullSecrets by name; volumeMounts by
// mountPath; ports by containerPort; hostAliases by ip); tolerations are appended; every other list
// replaces.
#pragma once

#include "common/kube/object.h"

namespace medley::ops {

// A container of the template without a name is the worker's.
kube::Json OverlayPodSpec(kube::Json base, const kube::Json& overlay);

}  // namespace medley::ops
