// One of the processes of a machine that need the same samples makes them, while the others wait.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

#include "common/base/clock.h"

namespace medley::worker {

// A process that has the lock, but has done nothing for so long, is not waited for any more.
inline constexpr base::seconds kSampleLockPatience{60};

// A lock file, which exists while a process makes samples. The kernel unlocks it when the process ends, however it
// ends, so that the next one takes its place. Move-only; Touch is thread-safe.
class SampleLock {
 public:
  // Waits for processes that have the lock of this path. Null: this process should make the samples without the lock,
  // because another one had it and made none that can be shared, or has it and does nothing, or because the folder
  // cannot have such files. `on_wait` is called now and then while it waits. Errors: Cancelled.
  static absl::StatusOr<std::optional<SampleLock>> Take(const std::filesystem::path& path, base::Clock& clock,
                                                        const std::stop_token& stop,
                                                        const std::function<void()>& on_wait);
  SampleLock(SampleLock&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  SampleLock& operator=(SampleLock&&) = delete;
  ~SampleLock();  // unlocks, and removes the file

  // Says that this process works.
  void Touch() const;
  // Says to those that wait that there will be nothing for them.
  void MadeNothing() const;

 private:
  SampleLock(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace medley::worker
