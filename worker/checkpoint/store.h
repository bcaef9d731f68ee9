// What only the coordinator does with checkpoints: complete them, list them, remove old ones. Thread-safe functions.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <vector>

#include "worker/checkpoint/layout.h"

namespace medley::worker {

// Makes the checkpoint complete: every file must be there with its length, then the manifest is written atomically.
// Errors: DataLoss (a file is missing or has another length), those of the file system.
absl::Status CompleteCheckpoint(const std::filesystem::path& root, const CheckpointManifest& manifest);

// Complete checkpoints (their manifest parses), oldest first. Does not verify the files.
absl::StatusOr<std::vector<CheckpointManifest>> ListCheckpoints(const std::filesystem::path& root);

// Keeps the newest `keep` (at least 1) complete checkpoints; removes older ones, and incomplete folders of a step below
// the newest complete one. Removing starts with the manifest, so a crash leaves no half checkpoint that looks whole.
absl::Status PruneCheckpoints(const std::filesystem::path& root, int keep);

}  // namespace medley::worker
