// Finds, completes and removes the job's checkpoints, and lets the finished model be written from one. For the engine,
// which calls it in its thread for files. Not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <memory>
#include <string>

#include "worker/checkpoint/store.h"
#include "worker/claim/claims.h"
#include "worker/coordinator/core/core.h"
#include "worker/coordinator/server/server.h"

namespace medley::worker {

// The newest checkpoint may be damaged before the next one is complete.
inline constexpr int kLeastKept = 2;

struct CheckpointFilesOptions {
  std::string job_uid;
  std::string model_fingerprint;
  int keep = 3;      // at least kLeastKept are kept
  std::string from;  // path of the checkpoint or job to continue from; empty: none
  int32_t epochs = 1;
  Claim claim;           // of this coordinator, which writes nothing after a newer one
  std::string settings;  // CheckpointManifest::settings
};

class CheckpointFiles {
 public:
  CheckpointFiles(CheckpointFilesOptions options, Volume volume);

  // When the job has no checkpoint, copies the one to continue from, which can take as long as writing a checkpoint.
  // Errors: those of the volume, also when a checkpoint cannot be read and `command` does not reject it; Aborted (a
  // newer coordinator has claimed the job).
  absl::StatusOr<CheckpointSearch> Search(const FindCheckpointCommand& command);
  // Completes the checkpoint, then removes old ones; logs a warning when the latter fails. Errors: DataLoss, Aborted
  // (a newer coordinator has claimed the job), those of the volume.
  absl::Status Publish(const WriteManifestCommand& command);
  // Removes the files of a checkpoint that was given up. One with a manifest stays.
  absl::Status Discard(const DiscardCheckpointCommand& command);
  // Removes the checkpoints that are not kept. Errors: those of the volume.
  absl::Status Prune(const std::string& best);
  // Lets `write` make the finished model from the newest checkpoint, or from that in command.folder. Errors: DataLoss
  // (the checkpoint of that step is lost), Aborted (a newer coordinator has claimed the job), those of `write` and of
  // the volume.
  absl::Status Export(const ExportModel& write, const ExportCommand& command);

 private:
  absl::Status StillLeads() const;
  absl::StatusOr<CheckpointSearch> Import();
  absl::StatusOr<CheckpointManifest> ToExport(const ExportCommand& command) const;

  const CheckpointFilesOptions options_;
  const Volume volume_;
  const Claims claims_;
  CheckpointStore store_;
  std::map<std::string, std::string> unusable_;  // of the last search
};

}  // namespace medley::worker
