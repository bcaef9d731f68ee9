// Creates a pod's volumes as folders and files below the pod's own folder.
//
// Supports configMap, secret, emptyDir, hostPath (the host's own path) and persistentVolumeClaim (the folder
// CLAIMS/NAMESPACE/CLAIM of this machine, which outlives its pods). Stateless; call it for one pod at a time.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <map>
#include <string>

#include "kube/object.h"
#include "localcluster/node/container_env.h"

namespace medley::localcluster {

struct VolumeFolders {
  std::filesystem::path pod;     // this pod's folder; volumes are below pod/volumes
  std::filesystem::path claims;  // for claims of all pods
};

// Returns volume name -> real path. Idempotent: files are replaced atomically, emptyDirs keep their content. Errors:
// NotFound (ConfigMap, Secret, key, host path), InvalidArgument (a volume type that a plain process cannot have), and
// those of the file system.
absl::StatusOr<std::map<std::string, std::string>> MakeVolumes(const kube::Object& pod, const VolumeFolders& folders,
                                                               const DataSource& source);

// Checks, at each start of a container, that its mounts still are in their volumes: an earlier program may have
// exchanged a volume or a subPath for a symbolic link. Links that stay inside a volume are followed, and so are those
// of a hostPath itself. `volumes`: of MakeVolumes. Errors: PermissionDenied naming the mount.
absl::Status CheckVolumes(const kube::Object& pod, const kube::Json& container,
                          const std::map<std::string, std::string>& volumes);

}  // namespace medley::localcluster
