// A lock on a run folder, so that two runs never use it at once. The kernel releases it when the process ends, however
// it ends. Movable; not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>

#include "localcluster/node/unique_fd.h"

namespace medley::cli {

class RunLock {
 public:
  // Errors: FailedPrecondition, a sentence with the process that holds it; those of the file system.
  static absl::StatusOr<RunLock> Take(const std::filesystem::path& folder);

 private:
  explicit RunLock(localcluster::UniqueFd fd) : fd_(std::move(fd)) {}
  localcluster::UniqueFd fd_;
};

}  // namespace medley::cli
