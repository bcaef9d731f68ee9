// Reads checkpoints: finds the newest complete one, verifies its checksums and restores it for any plan.
//
// A member reads only the operations and rows that it needs; how many stages or shards wrote the files does not matter.
// Functions are thread-safe; they read files and keep no state.
#pragma once

#include <absl/functional/any_invocable.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/checkpoint/layout.h"

namespace medley::worker {

// Returns the manifest of ROOT/FOLDER. Errors: NotFound (no manifest), DataLoss.
absl::StatusOr<CheckpointManifest> ReadManifest(const std::filesystem::path& root, std::string_view folder);

// Checks that every file of the manifest exists with the right length and CRC. Errors: DataLoss naming the file and the
// difference.
absl::Status VerifyCheckpoint(const std::filesystem::path& root, const CheckpointManifest& manifest);

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
// Each section's CRC is checked before the handler gets it. Errors: DataLoss naming the file.
absl::Status ReadCheckpoint(const std::filesystem::path& root, const CheckpointManifest& manifest,
                            CheckpointHandlers handlers);

// A checkpoint that FindCheckpoint skipped. Example of a `reason`:
// "step-00000042: rows-e3-1.mck: crc32 is 1f, the manifest says 2e".
struct RejectedCheckpoint {
  std::string folder;
  std::string reason;
};

struct FoundCheckpoint {
  std::optional<CheckpointManifest> manifest;  // nullopt: no checkpoint, start from the seed
  std::vector<RejectedCheckpoint> rejected;    // newer ones that are damaged, incomplete or of another job or model
};

// Finds the newest complete and undamaged checkpoint of this job and model at step `at_most` or before. An empty uid or
// fingerprint matches any. A root that does not exist counts as empty. Errors: those of the file system.
absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::filesystem::path& root, std::string_view job_uid,
                                               std::string_view model_fingerprint, int64_t at_most = INT64_MAX);

}  // namespace medley::worker
