// Creates pods that the operator will know again. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include "operator/controllers/job_deps.h"

namespace medley::ops {

// Signs `pod`, which is complete, and creates it. Errors: of the API server, as Client::Create. Aborted: the clocks of
// this machine and of the API server differ by minutes, so that the operator would not believe the pod; it is deleted
// again, and the next attempt has the API server's time.
absl::Status CreateSignedPod(const JobDeps& deps, kube::Object pod);

}  // namespace medley::ops
