// Locks of files, which the kernel ends with the process that has them.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <functional>
#include <stop_token>
#include <utility>

#include "common/base/clock.h"

namespace medley::worker {

enum class LockKind { kShared, kAlone };

// Move-only.
class FileLock {
 public:
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  // Creates the file. Waits until no other process has the lock; `on_wait` is called now and then. Errors: Cancelled;
  // those of the file system.
  static absl::StatusOr<FileLock> Take(const std::filesystem::path& path, LockKind kind, base::Clock& clock,
                                       const std::stop_token& stop, const std::function<void()>& on_wait = {});
  // Errors: also Unavailable: another process has it.
  static absl::StatusOr<FileLock> Try(const std::filesystem::path& path, LockKind kind);

  // The caller keeps the lock until it closes the descriptor.
  int Release() { return std::exchange(fd_, -1); }

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace medley::worker
