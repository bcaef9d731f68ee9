// The Pod Security Standard `restricted` (Kubernetes v1.34) for pods that carry a user's template.
// Pure.
#pragma once

#include "kube/object.h"

namespace medley::ops {

// Gives every container and init container what `restricted` asks of each where the template is
// silent: no privilege escalation, no capabilities. What the template says stays, and is the
// namespace's to refuse.
void FillRestricted(kube::Json& pod_spec);

}  // namespace medley::ops
