#include "localcluster/node/file_access.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "common/base/status.h"

namespace medley::localcluster {
namespace {

namespace fs = std::filesystem;

// O_PATH: a folder may be passed through without the right to list it.
constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// O_NOFOLLOW gives ELOOP for a link, and with O_DIRECTORY ENOTDIR.
absl::Status Refusal(int error, const fs::path& path, const char* what) {
  struct stat info = {};
  if ((error == ELOOP || error == ENOTDIR) && lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
    return base::PermissionDenied("{} {}: it is a symbolic link, which is not followed here", what, path.string());
  }
  if (error == ENOTDIR) return base::PermissionDenied("{} {}: it is not a folder", what, path.string());
  return base::ErrnoStatus(error, fmt::format("{} {}", what, path.string()));
}

}  // namespace

absl::StatusOr<UniqueFd> OpenFolder(const fs::path& path, bool create) {
  if (!path.is_absolute()) return base::InvalidArgument("opening {}: the path must be absolute", path.string());
  UniqueFd folder(open("/", kFolderFlags));
  fs::path reached = "/";
  for (const fs::path& part : path.relative_path()) {
    if (part.empty()) continue;
    if (part == "." || part == "..") return base::InvalidArgument("opening {}: the path is not normal", path.string());
    reached /= part;
    UniqueFd next(openat(folder.get(), part.c_str(), kFolderFlags));
    if (!next.valid() && errno == ENOENT && create) {
      if (mkdirat(folder.get(), part.c_str(), 0755) != 0 && errno != EEXIST) {
        return base::ErrnoStatus(errno, "creating folder " + reached.string());
      }
      next = UniqueFd(openat(folder.get(), part.c_str(), kFolderFlags));
    }
    if (!next.valid()) return Refusal(errno, reached, "opening folder");
    folder = std::move(next);
  }
  if (!folder.valid()) return base::ErrnoStatus(errno, "opening folder " + path.string());
  return folder;
}

absl::StatusOr<UniqueFd> OpenFile(const fs::path& path, int flags, mode_t mode) {
  MEDLEY_ASSIGN_OR_RETURN(const UniqueFd folder, OpenFolder(path.parent_path()));
  // O_NONBLOCK: a FIFO in the place of the file must not block the caller.
  UniqueFd file(openat(folder.get(), path.filename().c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode));
  if (!file.valid()) return Refusal(errno, path, "opening");
  struct stat info = {};
  if (fstat(file.get(), &info) != 0) return base::ErrnoStatus(errno, "reading the state of " + path.string());
  if (!S_ISREG(info.st_mode)) return base::PermissionDenied("opening {}: it is not a regular file", path.string());
  return file;
}

absl::StatusOr<fs::path> PathInVolume(const fs::path& volume, const fs::path& sub) {
  std::error_code error;
  const fs::path root = fs::weakly_canonical(volume, error);
  const fs::path path = error ? fs::path() : fs::weakly_canonical(volume / sub, error);
  if (error) return base::ErrnoStatus(error.value(), "resolving " + (volume / sub).string());
  const auto [end, at] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  if (end != root.end()) {
    return base::PermissionDenied("{} leads out of its volume, to {}", (volume / sub).string(), path.string());
  }
  // What is canonical has no links, except one to a file that does not exist yet.
  fs::path reached = root;
  for (auto part = at; part != path.end(); ++part) {
    reached /= *part;
    if (fs::is_symlink(fs::symlink_status(reached, error))) {
      return base::PermissionDenied("{} is a symbolic link to a file that does not exist", reached.string());
    }
  }
  return path;
}

}  // namespace medley::localcluster
