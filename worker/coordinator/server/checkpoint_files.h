// Finds, completes and removes the job's checkpoints for the engine, which calls it in its thread for files. Not
// thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "worker/checkpoint/store.h"
#include "worker/coordinator/core/core.h"
#include "worker/coordinator/server/folder_owner.h"

namespace medley::worker {

struct CheckpointFilesOptions {
  std::string job_uid;
  std::string model_fingerprint;
  int keep = 3;
};

class CheckpointFiles {
 public:
  CheckpointFiles(CheckpointFilesOptions options, Volume volume, FolderOwner owner);

  // Errors: those of the volume, also when a checkpoint cannot be read and `command` does not reject it.
  absl::StatusOr<CheckpointSearch> Search(const FindCheckpointCommand& command);
  // Completes the checkpoint, then removes old ones; logs a warning when the latter fails. Errors: DataLoss,
  // FailedPrecondition (FolderOwner), those of the volume.
  absl::Status Publish(const WriteManifestCommand& command);

 private:
  absl::Status Prune();

  const CheckpointFilesOptions options_;
  const Volume volume_;
  const FolderOwner owner_;
  CheckpointStore store_;
};

}  // namespace medley::worker
