// The Pod Security Standard `restricted` (Kubernetes v1.34) for pods with a user's template. Pure.
#pragma once

#include "kube/object.h"

namespace medley::ops {

// Adds to every container and init container the settings that `restricted` requires (no privilege escalation, no
// capabilities) when the template does not set them. Settings of the template are kept: the namespace's Pod Security
// level decides whether they are admitted.
void FillRestricted(kube::Json& pod_spec);

}  // namespace medley::ops
