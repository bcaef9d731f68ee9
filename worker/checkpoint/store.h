// The coordinator's part of checkpoints: complete them and remove old ones.
//
// Not thread-safe: the thread that accesses the volume owns it.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "worker/checkpoint/files.h"
#include "worker/checkpoint/layout.h"

namespace medley::worker {

class CheckpointStore {
 public:
  CheckpointStore(Volume volume, std::string job_uid) : volume_(std::move(volume)), job_uid_(std::move(job_uid)) {}

  // Publishes a checkpoint: verifies every file, then writes the manifest atomically. Errors: DataLoss (a file does not
  // exist or differs from what its writer reported), those of the file system.
  absl::Status Complete(const CheckpointManifest& manifest);

  // Keeps the newest `keep` (at least 1) checkpoints that verify and removes what is older, damaged or not. One that is
  // damaged, cannot be read or is in `distrusted` (folders that a member could not restore) is not counted, so that it
  // never takes the place of one that can be restored. Also removes folders that were never completed and are
  // older than a checkpoint that verifies (members may be writing newer ones), and from the checkpoints that it keeps
  // what no manifest names. Other jobs' checkpoints stay.
  //
  // Errors: those of the file system, the first one, after everything else was done.
  // `best`: the folder of a checkpoint that also stays, however old it is; empty: none.
  absl::Status Prune(int keep, const std::set<std::string>& distrusted = {}, const std::string& best = "");

  // The damaged ones that the last Prune found: "step-00000042-e3: rows-e3-1.mck: the file does not exist".
  const std::vector<std::string>& damaged() const { return damaged_; }

 private:
  absl::Status Verify(const CheckpointManifest& manifest);
  absl::StatusOr<std::vector<FileStamp>> Stamps(const CheckpointManifest& manifest) const;
  absl::Status RemoveStrays(const CheckpointManifest& manifest);

  struct Verified {
    CheckpointManifest manifest;
    std::vector<FileStamp> stamps;
  };
  const Volume volume_;
  const std::string job_uid_;
  // By folder. Checksums are computed again only when a file has changed since, because that reads the whole file.
  std::map<std::string, Verified> verified_;
  std::vector<std::string> damaged_;
};

}  // namespace medley::worker
