// Copies a checkpoint of another job into this job's folder (spec.checkpoint.from), so that this job owns it.
//
// Functions are thread-safe; they keep no state.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "worker/checkpoint/files.h"
#include "worker/checkpoint/layout.h"

namespace medley::worker {

// The job that takes the checkpoint over.
struct ImportingJob {
  std::string uid;
  std::string model_fingerprint;  // the checkpoint must have the same; empty: any
  int32_t epochs = 1;             // of this job; more than the checkpoint has trained
  std::string settings;           // as CheckpointManifest::settings, for what a refusal says
};

// `from` is the folder of a job on a volume or of one of its checkpoints; a trailing slash is ignored. Of a job, the
// newest checkpoint with the fingerprint that verifies is taken. The copy gets generation 0, so it is older than
// every checkpoint of this job. Returns the manifest that completes it: the caller publishes it with
// CheckpointStore::Complete. A copy that was interrupted is made again.
//
// Errors: FailedPrecondition, a sentence for users: there is no such folder or checkpoint, its model is another one, it
// is damaged, or it has already trained all epochs. Any other error is one of the volume, and may pass.
absl::StatusOr<CheckpointManifest> ImportCheckpoint(const Volume& to, const std::filesystem::path& from,
                                                    const ImportingJob& job);

}  // namespace medley::worker
