// Makes a pod's volumes real: folders and files under the pod's own folder.
//
// configMap, secret, emptyDir, hostPath (the host's own path), and persistentVolumeClaim: a folder of this
// machine, CLAIMS/NAMESPACE/CLAIM, that outlives its pods. Stateless; one pod at a time.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <map>
#include <string>

#include "kube/object.h"
#include "localcluster/node/container_env.h"

namespace medley::kube {

struct VolumeFolders {
  std::filesystem::path pod;     // this pod's folder; volumes go under pod/volumes
  std::filesystem::path claims;  // of all pods
};

// Volume name -> real path. Idempotent: files are replaced atomically, emptyDirs keep what is in them.
// Errors: NotFound (ConfigMap, Secret, key, host path), InvalidArgument (a volume type that a plain
// process cannot have), and those of the file system.
absl::StatusOr<std::map<std::string, std::string>> MakeVolumes(const Object& pod, const VolumeFolders& folders,
                                                               const DataSource& source);

}  // namespace medley::kube
