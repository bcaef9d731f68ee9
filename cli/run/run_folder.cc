#include "cli/run/run_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "common/base/status.h"

namespace medley::cli {

absl::Status MakeRunFolder(const std::filesystem::path& folder) {
  // Without a trailing slash, whose parent would be the folder itself.
  const std::filesystem::path path = folder.has_filename() ? folder : folder.parent_path();
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) return base::ErrnoStatus(error.value(), "creating the folder of " + path.string());
  if (mkdir(path.c_str(), 0700) == 0) return absl::OkStatus();
  if (errno != EEXIST) return base::ErrnoStatus(errno, "creating " + path.string());
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return base::ErrnoStatus(errno, "the run folder " + path.string());
  if (!S_ISDIR(info.st_mode)) return base::InvalidArgument("the run folder {} is not a folder", path.string());
  if (info.st_uid != geteuid()) {
    return base::PermissionDenied(
        "the run folder {} belongs to another user, who could read the cluster's credentials; "
        "name another one with --folder",
        path.string());
  }
  if ((info.st_mode & S_IWOTH) != 0) {
    return base::PermissionDenied(
        "every user may write to the run folder {}, and could exchange the cluster's "
        "credentials; chmod o-w it, or name another one with --folder",
        path.string());
  }
  return absl::OkStatus();
}

}  // namespace medley::cli
