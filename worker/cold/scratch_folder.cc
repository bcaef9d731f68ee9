#include "worker/cold/scratch_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr char kOwner[] = "owner";

// Locks the file of the folder's owner. -1: another process has it, or there is no such file yet.
int TryLock(const std::filesystem::path& folder, int flags) {
  const int file = open((folder / kOwner).c_str(), flags | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  close(file);
  return -1;
}

void RemoveOrphans(const std::filesystem::path& parent, std::string_view prefix) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(prefix)) continue;
    const int lock = TryLock(entry->path(), 0);
    if (lock < 0) continue;
    std::error_code ignored;
    std::filesystem::remove_all(entry->path(), ignored);
    close(lock);
  }
}

}  // namespace

absl::StatusOr<ScratchFolder> ScratchFolder::Make(const std::filesystem::path& parent, std::string_view prefix) {
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  RemoveOrphans(parent, prefix);
  std::string path = (parent / (std::string(prefix) + "XXXXXX")).string();
  if (mkdtemp(path.data()) == nullptr) {
    return base::Unavailable("creating a folder in {}: {}", parent.string(), std::strerror(errno));
  }
  const int lock = TryLock(path, O_CREAT);
  if (lock < 0) return base::Unavailable("locking the folder {}: {}", path, std::strerror(errno));
  return ScratchFolder(path, lock);
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

ScratchFolder::~ScratchFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

}  // namespace medley::worker
