// Fences a coordinator that was replaced but still runs, for example on a node that lost its network: the last process
// that claimed the job's folder may write to it.
//
// The file `owner` in the folder names that process. Check is not atomic with the write that follows it. What an
// earlier coordinator writes in between lies in the folder of its own generation. Immutable, thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "worker/checkpoint/files.h"

namespace medley::worker {

class FolderOwner {
 public:
  // `instance` is different in every process; "": neither claims nor checks.
  static absl::StatusOr<FolderOwner> Claim(Volume volume, std::string instance);
  // FailedPrecondition when another process has claimed the folder since.
  absl::Status Check() const;

 private:
  FolderOwner(Volume volume, std::string instance) : volume_(std::move(volume)), instance_(std::move(instance)) {}

  Volume volume_;
  std::string instance_;
};

}  // namespace medley::worker
