// Merges the user's pod template into a pod by the rules of Kubernetes' strategic merge patch of a PodSpec. Pure.
//
// Objects merge field by field and null removes, as in RFC 7386. Lists merge entry by entry where Kubernetes' types
// have a patchMergeKey:
//
//   name           containers, initContainers, ephemeralContainers, volumes, env, imagePullSecrets,
//                  schedulingGates, resourceClaims
//   mountPath      volumeMounts            devicePath   volumeDevices
//   containerPort  ports                   ip           hostAliases
//   topologyKey    topologySpreadConstraints
//
// A merged volume or resource claim keeps only the fields of the template's entry (patchStrategy retainKeys), so that a
// template can turn an emptyDir into a persistentVolumeClaim. Every other list of the template replaces the pod's list,
// except tolerations, which are appended: replacing them would keep the pod off the nodes of its pool. Directives:
// "$patch": "delete" or "replace" in an object or in an entry of a list, and "$retainKeys".
#pragma once

#include "kube/object.h"

namespace medley::ops {

// A container of the template without a name is merged into the worker's container. The template cannot remove the
// worker's container.
kube::Json OverlayPodSpec(kube::Json base, const kube::Json& overlay);

}  // namespace medley::ops
