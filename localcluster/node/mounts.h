// Finds the real paths of a container's mounts, and rewrites paths instead of mounting. Pure.
//
// Processes share the machine's file system, so nothing is mounted. Each path that begins with a mount path is
// rewritten to the real path: in commands, arguments, variables, the working folder, and the text of ConfigMap volumes.
// A mount path matches only where a path begins (not inside "/srv/data" for "/data") and must end at the end of a name.
// It matches in "file:///data/x" but not in "http://data/x", where "data" is the host.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.h"

namespace medley::localcluster {

struct Mount {
  std::string volume;
  std::string mount_path;
  std::string real_path;  // includes the subPath
};

// The longest matching mount path is used. Rewritten text is not rewritten again.
std::string RewritePaths(std::string_view text, const std::vector<Mount>& mounts);

// The volumeMounts of `container`; `volumes`: volume name -> real path. Errors: InvalidArgument for a mount without a
// volume, a relative mount path, or a subPath that leaves the volume.
absl::StatusOr<std::vector<Mount>> ContainerMounts(const kube::Json& container,
                                                   const std::map<std::string, std::string>& volumes);

// "MEDLEY_MOUNT_MY_DATA" for volume "my-data".
std::string MountVariable(std::string_view volume);

}  // namespace medley::localcluster
