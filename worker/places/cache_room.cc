#include "worker/places/cache_room.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/places/file_lock.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLock = ".lock";
constexpr std::string_view kPart = ".part";

struct CachedFile {
  fs::path path;
  std::string id;
  int64_t bytes = 0;
  int64_t written = 0;  // nanoseconds
};

int64_t WrittenAt(const struct stat& of) { return int64_t{of.st_mtim.tv_sec} * 1'000'000'000 + of.st_mtim.tv_nsec; }

std::vector<CachedFile> ObjectsOf(const fs::path& folder) {
  std::vector<CachedFile> files;
  std::error_code error;
  for (fs::directory_iterator at(folder / "objects", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    struct stat found = {};
    if (name.ends_with(kLock) || lstat(at->path().c_str(), &found) != 0 || !S_ISREG(found.st_mode)) continue;
    const std::string id = name.ends_with(kPart) ? name.substr(0, name.size() - kPart.size()) : name;
    files.push_back({at->path(), id, found.st_size, WrittenAt(found)});
  }
  std::ranges::sort(files, {}, &CachedFile::written);
  return files;
}

// The ids of the objects that views have, also those that are being made.
std::set<std::string> IdsOfViews(const fs::path& folder) {
  std::set<std::string> ids;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder / "views", error), end; !error && at != end; at.increment(error)) {
    std::error_code no_link;
    if (at->is_symlink(no_link)) ids.insert(fs::read_symlink(at->path(), no_link).filename().string());
  }
  return ids;
}

// The lock files of views; the longest unused first. A view may have several folders while it is made.
std::vector<CachedFile> LocksOfViews(const fs::path& folder) {
  std::vector<CachedFile> locks;
  std::error_code error;
  for (fs::directory_iterator at(folder / "views", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    struct stat found = {};
    if (!name.ends_with(kLock) || lstat(at->path().c_str(), &found) != 0) continue;
    locks.push_back({at->path(), name.substr(0, name.size() - kLock.size()), 0, WrittenAt(found)});
  }
  std::ranges::sort(locks, {}, &CachedFile::written);
  return locks;
}

// Whether the view was removed; not while a process reads it.
bool RemoveView(const fs::path& folder, const CachedFile& view) {
  const auto lock = FileLock::Try(view.path, LockKind::kAlone);
  if (!lock.ok()) return false;
  std::error_code error;
  std::vector<fs::path> folders;
  for (fs::directory_iterator at(folder / "views", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name == view.id || (name.starts_with(view.id + ".") && !name.ends_with(kLock))) folders.push_back(at->path());
  }
  for (const fs::path& each : folders) fs::remove_all(each, error);
  fs::remove(view.path, error);
  return !error;
}

}  // namespace

int64_t StandardCacheBytes(const fs::path& folder) {
  struct statvfs about = {};
  if (statvfs(folder.c_str(), &about) != 0) return 0;
  return static_cast<int64_t>(about.f_blocks) / 2 * static_cast<int64_t>(about.f_frsize);
}

absl::Status MakeCacheRoom(const fs::path& folder, int64_t most_bytes, int64_t bytes) {
  if (bytes > most_bytes) {
    return base::ResourceExhausted("{} bytes are more than the cache may have, {} (MEDLEY_CACHE_BYTES)", bytes,
                                   most_bytes);
  }
  int64_t disk = 0;
  const auto fits = [&] {
    int64_t used = 0;
    for (const CachedFile& file : ObjectsOf(folder)) used += file.bytes;
    struct statvfs about = {};
    disk = statvfs(folder.c_str(), &about) == 0
               ? static_cast<int64_t>(about.f_bavail) * static_cast<int64_t>(about.f_frsize)
               : bytes;
    return used + bytes <= most_bytes && bytes <= disk;
  };
  const auto sweep = [&] {
    const std::set<std::string> in_use = IdsOfViews(folder);
    std::error_code error;
    for (const CachedFile& file : ObjectsOf(folder)) {
      if (fits()) return true;
      if (!in_use.contains(file.id)) fs::remove(file.path, error);
    }
    return fits();
  };
  if (fits() || sweep()) return absl::OkStatus();
  for (const CachedFile& view : LocksOfViews(folder)) {
    if (RemoveView(folder, view) && sweep()) return absl::OkStatus();
  }
  if (bytes > disk) {
    return base::ResourceExhausted("the disk of {} is full: it has {} bytes left and needs {}", folder.string(), disk,
                                   bytes);
  }
  return base::ResourceExhausted(
      "the cache {} may have {} bytes (MEDLEY_CACHE_BYTES), and jobs of this machine use so many of them that {} more "
      "do not fit",
      folder.string(), most_bytes, bytes);
}

}  // namespace medley::worker
