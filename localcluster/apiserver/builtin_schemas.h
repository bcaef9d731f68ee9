// The schemas of Kubernetes' own kinds (schemas/builtin.json), compiled into the program.
#pragma once

#include "kube/schema/schema.h"

namespace medley::localcluster::apiserver {

// By name, as "io.k8s.api.core.v1.Pod". Parses megabytes: keep the result. Pure.
kube::Definitions BuiltinDefinitions();

}  // namespace medley::localcluster::apiserver
