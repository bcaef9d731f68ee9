// The user's pod template laid over a pod: Kubernetes' strategic merge patch of a PodSpec. Pure.
//
// Objects merge field by field and null removes, as in RFC 7386. Lists merge entry by entry where
// Kubernetes' types have a patchMergeKey:
//
//   name           containers, initContainers, ephemeralContainers, volumes, env, imagePullSecrets,
//                  schedulingGates, resourceClaims
//   mountPath      volumeMounts            devicePath   volumeDevices
//   containerPort  ports                   ip           hostAliases
//   topologyKey    topologySpreadConstraints
//
// Volumes and resource claims keep only the fields of the template's entry (patchStrategy
// retainKeys), so that an emptyDir becomes a claim. Every other list replaces, but for tolerations,
// which are added: replacing them would take a pod off its pool. Directives: "$patch": "delete" or
// "replace" in an object or in an entry of a list, and "$retainKeys".
#pragma once

#include "kube/object.h"

namespace medley::ops {

// A container of the template without a name is the worker's; the worker cannot be removed.
kube::Json OverlayPodSpec(kube::Json base, const kube::Json& overlay);

}  // namespace medley::ops
