// The folder of a job on its checkpoint volume. Pure.
#pragma once

#include <string>

#include "kube/object.h"

namespace medley::ops {

// "NAMESPACE-JOB-UID": jobs may share a volume.
inline std::string JobFolder(const kube::Object& job) { return job.key().ns + "-" + job.key().name + "-" + job.uid(); }

}  // namespace medley::ops
