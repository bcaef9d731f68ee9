#include "worker/places/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr base::milliseconds kLockPoll{50};

// Whether the name still means the file that is locked: the one that had it may have removed it.
bool IsNamed(int fd, const std::filesystem::path& path) {
  struct stat locked = {}, named = {};
  return fstat(fd, &locked) == 0 && stat(path.c_str(), &named) == 0 && locked.st_dev == named.st_dev &&
         locked.st_ino == named.st_ino;
}

}  // namespace

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<FileLock> FileLock::Try(const std::filesystem::path& path, LockKind kind) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return base::ErrnoStatus(errno, "creating " + path.string());
  FileLock lock(fd);
  if (flock(fd, (kind == LockKind::kShared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK || errno == EINTR) return base::Unavailable("{} is locked", path.string());
    return base::ErrnoStatus(errno, "locking " + path.string());
  }
  if (!IsNamed(fd, path)) return base::Unavailable("{} was removed meanwhile", path.string());
  return lock;
}

absl::StatusOr<FileLock> FileLock::Take(const std::filesystem::path& path, LockKind kind, base::Clock& clock,
                                        const std::stop_token& stop, const std::function<void()>& on_wait) {
  while (true) {
    absl::StatusOr<FileLock> lock = Try(path, kind);
    if (!absl::IsUnavailable(lock.status())) return lock;
    if (on_wait) on_wait();
    if (!clock.SleepFor(kLockPoll, stop)) return base::Cancelled("waiting for {}: stopped", path.string());
  }
}

}  // namespace medley::worker
