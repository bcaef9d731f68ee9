// Reads checkpoints: finds the newest complete one, verifies its checksums and restores it for any plan.
//
// A member reads only the operations and rows that it needs; how many stages or shards wrote the files does not matter.
// Functions are thread-safe; they read files and keep no state.
#pragma once

#include <absl/functional/any_invocable.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/checkpoint/files.h"
#include "worker/checkpoint/layout.h"

namespace medley::worker {

// Returns the manifest of a folder. Errors: NotFound (no manifest), DataLoss (damaged), those of the file system.
absl::StatusOr<CheckpointManifest> ReadManifest(const Volume& volume, std::string_view folder);

// Checks that every file of the manifest exists, says itself that it belongs to this checkpoint (header.h), and has the
// right length and digest. Errors: DataLoss naming the file and the difference; those of the file system when a file
// cannot be read, which says nothing about its content. kWhereTheVolumeDoesNot: without the digests of objects, whose
// bytes the store checked when it took them, and for which the whole checkpoint would come over the network.
enum class VerifyBytes { kAll, kWhereTheVolumeDoesNot };
absl::Status VerifyCheckpoint(const Volume& volume, const CheckpointManifest& manifest,
                              VerifyBytes bytes = VerifyBytes::kAll);

// The callbacks of ReadCheckpoint. Spans are valid during the call. ReadCheckpoint stops at the first error of a
// handler and returns it.
struct CheckpointHandlers {
  // Decides by operation, before the payload is read, whether `dense` gets it. Unset: it gets every operation.
  absl::AnyInvocable<bool(int32_t operation)> wanted_dense;
  absl::AnyInvocable<absl::Status(int32_t operation, std::string_view name, std::span<const float> weights,
                                  std::span<const float> state)>
      dense;
  absl::AnyInvocable<bool(int32_t table)> wanted_rows;
  absl::AnyInvocable<absl::Status(int32_t table, int32_t width, std::span<const uint64_t> keys,
                                  std::span<const float> values)>
      rows;
};

// Calls the handlers for every wanted section, in the manifest's order. Sections whose handler is unset are skipped.
// Each file's header and each section's CRC are checked before a handler gets the section. Errors: DataLoss naming the
// file; those of the file system.
absl::Status ReadCheckpoint(const Volume& volume, const CheckpointManifest& manifest, CheckpointHandlers handlers);

// Returns the folders of checkpoints, complete or not, newest first. Errors: those of the file system; NotFound when
// the root does not exist.
absl::StatusOr<std::vector<CheckpointName>> ListCheckpointFolders(const Volume& volume);

// A checkpoint that FindCheckpoint skipped. Example of a `reason`:
// "step-00000042-e3: rows-e3-1.mck: the file is of step 40, the manifest says 42".
struct RejectedCheckpoint {
  enum class Why {
    kIncomplete,  // has no manifest: it was never completed
    kForeign,     // of another job
    kUnusable,    // damaged, or of another model
    kUnreadable   // an error of the file system, which may pass
  };
  std::string folder;
  Why why = Why::kIncomplete;
  std::string reason;
};

struct FoundCheckpoint {
  std::optional<CheckpointManifest> manifest;  // nullopt: none can be restored; `rejected` says why
  std::vector<RejectedCheckpoint> rejected;    // the newer ones
};

// Finds the newest checkpoint of this job and model that is complete and undamaged. An empty uid or fingerprint matches
// any. `unusable`: folders that are rejected without a look, with the reason. `settings`: of this job, as
// CheckpointManifest::settings, for what the reasons say. Errors: those of ListCheckpointFolders.
absl::StatusOr<FoundCheckpoint> FindCheckpoint(const Volume& volume, std::string_view job_uid,
                                               std::string_view model_fingerprint,
                                               const std::map<std::string, std::string>& unusable = {},
                                               const std::string& settings = {});

}  // namespace medley::worker
