// The folder of a job on its checkpoint volume, or below spec.checkpoint.uri. Pure.
#pragma once

#include <string>

#include "kube/object.h"

namespace medley::ops {

// "NAMESPACE-JOB-UID": jobs may share a volume.
inline std::string JobFolder(const kube::Object& job) { return job.key().ns + "-" + job.key().name + "-" + job.uid(); }

// The address of that folder, for a uri that is not empty.
inline std::string CheckpointUri(std::string uri, const kube::Object& job) {
  while (uri.ends_with('/')) uri.pop_back();
  return uri + "/" + JobFolder(job);
}

}  // namespace medley::ops
