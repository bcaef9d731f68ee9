// Opens and creates files of pods without following symbolic links.
//
// The pods' programs run as the same user and can put links into their folders. What this process reads or writes there
// (logs, volumes) must not be led to other files of the user. Paths are absolute and normal, and no part of them may be
// a link: the node's root folder is made canonical when the node starts. Thread-safe.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <filesystem>

#include "localcluster/node/unique_fd.h"

namespace medley::localcluster {

// Opens a folder, which is created, with its parents, if `create` is set. Errors: PermissionDenied naming the link or
// what is no folder; NotFound; those of the file system.
absl::StatusOr<UniqueFd> OpenFolder(const std::filesystem::path& path, bool create = false);

// Opens a regular file; `flags` and `mode` as of open. Errors: as OpenFolder, and PermissionDenied for a file that is
// not regular, such as a FIFO.
absl::StatusOr<UniqueFd> OpenFile(const std::filesystem::path& path, int flags, mode_t mode = 0644);

// The canonical path of a part of a volume, of which `sub` may not exist yet. Links are followed, as those of a data
// set are, unless they lead out of `volume`. Errors: PermissionDenied naming the path.
absl::StatusOr<std::filesystem::path> PathInVolume(const std::filesystem::path& volume,
                                                   const std::filesystem::path& sub);

}  // namespace medley::localcluster
