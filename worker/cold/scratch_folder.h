// A folder for files of this process alone, which are of no use to any other.
//
// Its owner holds a lock of it, which the kernel drops when the process ends in any way. So the next process that makes
// such a folder beside it removes what killed processes have left. Not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string_view>

namespace medley::worker {

class ScratchFolder {
 public:
  // Creates `parent` and in it a folder whose name begins with `prefix`, and removes folders of this prefix without an
  // owner. Errors: Unavailable, which says what the system said.
  static absl::StatusOr<ScratchFolder> Make(const std::filesystem::path& parent, std::string_view prefix);
  ~ScratchFolder();  // removes it
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  ScratchFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::filesystem::path path_;  // empty: moved from
  int lock_ = -1;
};

}  // namespace medley::worker
