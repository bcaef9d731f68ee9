// Reads checkpoints: finds the newest one that is whole, verifies every byte, restores onto any plan.
//
// A restored member reads what it needs: any range of operations, any subset of rows; how many stages or shards wrote
// the files does not matter. Functions are thread-safe; they read files and keep no state.
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

// The manifest of ROOT/FOLDER. Errors: NotFound (no manifest), DataLoss.
absl::StatusOr<CheckpointManifest> ReadManifest(const std::filesystem::path& root, std::string_view folder);

// Every file of the manifest exists with its bytes and CRC. Errors: DataLoss naming the file and why.
absl::Status VerifyCheckpoint(const std::filesystem::path& root, const CheckpointManifest& manifest);

// What a reader is given; spans live during the call. A handler's error ends the read and is returned.
struct CheckpointHandlers {
  // `wanted` decides by operation before the payload is read; unset: all.
  absl::AnyInvocable<bool(int32_t operation)> wanted_dense;
  absl::AnyInvocable<absl::Status(int32_t operation, std::string_view name, std::span<const float> weights,
                                  std::span<const float> state)>
      dense;
  absl::AnyInvocable<bool(int32_t table)> wanted_rows;
  absl::AnyInvocable<absl::Status(int32_t table, int32_t width, std::span<const uint64_t> keys,
                                  std::span<const float> values)>
      rows;
};

// Streams every wanted section through the handlers, in the manifest's order; an unset handler skips its kind. Each
// section has its own CRC, checked before the handler sees it. Errors: DataLoss naming the file.
absl::Status ReadCheckpoint(const std::filesystem::path& root, const CheckpointManifest& manifest,
                            CheckpointHandlers handlers);

// A checkpoint that was passed over, and why ("step-00000042: rows-e3-1.mck: crc32 is 1f, manifest says 2e").
struct RejectedCheckpoint {
  std::string folder;
  std::string reason;
};

struct FoundCheckpoint {
  std::optional<CheckpointManifest> manifest;  // none: start from the seed
  std::vector<RejectedCheckpoint> rejected;    // newer ones that are not whole or not this job's
};

// The newest whole checkpoint of this job and model at step `at_most` or before (empty uid or fingerprint: any).
// A missing root is an empty one. Errors: those of the file system.
absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::filesystem::path& root, std::string_view job_uid,
                                               std::string_view model_fingerprint, int64_t at_most = INT64_MAX);

}  // namespace medley::worker
