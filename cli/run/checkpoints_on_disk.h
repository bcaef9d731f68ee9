// What lies on the checkpoint volume of a local run: its newest checkpoint and the coordinator that led it last. They
// read files; they change nothing.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "kube/object.h"

namespace medley::cli {

struct CheckpointOnDisk {
  int64_t step = 0;
  std::filesystem::path folder;
};

// The job's folder on its checkpoint volume. `claims`: the process node's folder of claims. Errors: as ExportFolderOf
// (model_folder.h). Pure.
absl::StatusOr<std::filesystem::path> CheckpointFolderOf(const kube::Object& job, const std::filesystem::path& claims);

// The newest that has a manifest; nullopt: there is none, or the folder cannot be read. Its files are not verified.
std::optional<CheckpointOnDisk> NewestCheckpoint(const std::filesystem::path& job_folder);

// The largest term that a coordinator has claimed; 0: none. Errors: DataLoss, those of the file system.
absl::StatusOr<int64_t> ClaimedTerm(const std::filesystem::path& job_folder);

}  // namespace medley::cli
