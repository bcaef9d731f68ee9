// The coordinator's part of checkpoints: complete them, list them, remove old ones. Thread-safe functions.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <vector>

#include "worker/checkpoint/layout.h"

namespace medley::worker {

// Completes a checkpoint: checks that every file exists with its length, then writes the manifest atomically.
// Errors: DataLoss (a file is missing or has another length), those of the file system.
absl::Status CompleteCheckpoint(const std::filesystem::path& root, const CheckpointManifest& manifest);

// Lists complete checkpoints (those whose manifest parses), oldest first. Does not verify the data files.
absl::StatusOr<std::vector<CheckpointManifest>> ListCheckpoints(const std::filesystem::path& root);

// Keeps the newest `keep` (at least 1) complete checkpoints. Removes older ones, and incomplete folders whose step is
// below the newest complete one. Removes the manifest first, so that a crash leaves no partial checkpoint that looks
// complete.
absl::Status PruneCheckpoints(const std::filesystem::path& root, int keep);

}  // namespace medley::worker
