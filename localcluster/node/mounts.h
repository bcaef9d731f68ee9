// Where a container's mount paths really are, and the rewriting that stands in for bind mounts. Pure.
//
// Processes share the machine's file system, so nothing is mounted: each path that begins with a mount
// path is rewritten to the real one, in commands, arguments, variables, the working folder, and the text
// of ConfigMap volumes. A mount path counts where a path begins (not inside "/srv/data" for "/data") and
// ends at a name's end; "file:///data/x" is seen, the host of "http://data/x" is not.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.h"

namespace medley::kube {

struct Mount {
  std::string volume;
  std::string mount_path;
  std::string real_path;  // with subPath
};

// The longest mount path wins. Text is read once: what was rewritten is not rewritten again.
std::string RewritePaths(std::string_view text, const std::vector<Mount>& mounts);

// The volumeMounts of `container`; `volumes`: name -> real path. Errors: InvalidArgument for a mount of
// no volume, a relative mount path, or a subPath that climbs out.
absl::StatusOr<std::vector<Mount>> ContainerMounts(const Json& container,
                                                   const std::map<std::string, std::string>& volumes);

// "MEDLEY_MOUNT_MY_DATA" for volume "my-data".
std::string MountVariable(std::string_view volume);

}  // namespace medley::kube
