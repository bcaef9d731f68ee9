// A volume of limited size, for tests: a write beyond it writes what has room and fails with ENOSPC. Thread-safe.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "common/base/status.h"
#include "worker/checkpoint/files.h"

namespace medley::worker {

class SmallVolume final : public Files {
 public:
  explicit SmallVolume(std::filesystem::path root) : root_(std::move(root)) {}

  void Limit(int64_t bytes) { limit_ = bytes; }
  // Nothing more has room.
  void Fill() { limit_ = Used(); }
  int64_t Used() const {
    int64_t used = 0;
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator at(root_, error), end; !error && at != end;
         at.increment(error)) {
      std::error_code gone;
      if (!at->is_regular_file(gone)) continue;
      const auto bytes = at->file_size(gone);
      if (!gone) used += static_cast<int64_t>(bytes);
    }
    return used;
  }

  absl::Status Write(int fd, std::string_view bytes) override {
    const int64_t room = limit_ - Used();
    if (room >= static_cast<int64_t>(bytes.size())) return Files::Write(fd, bytes);
    if (room > 0) MEDLEY_RETURN_IF_ERROR(Files::Write(fd, bytes.substr(0, static_cast<size_t>(room))));
    return base::ErrnoStatus(ENOSPC, "writing");
  }
  // What these tests write need not outlive the machine: 5,000 records took half a minute on a busy disk.
  absl::Status Sync(int) override { return absl::OkStatus(); }

 private:
  const std::filesystem::path root_;
  std::atomic<int64_t> limit_ = int64_t{1} << 40;
};

}  // namespace medley::worker
