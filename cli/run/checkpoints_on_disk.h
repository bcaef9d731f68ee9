// What lies on the checkpoint volume of a local run, or in the object store: its newest checkpoint and the coordinator
// that led it last. They read files; they change nothing.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "kube/object.h"
#include "worker/checkpoint/files.h"

namespace medley::cli {

struct CheckpointOnDisk {
  int64_t step = 0;
  std::filesystem::path folder;
};

// The job's folder on its checkpoint volume. `claims`: the process node's folder of claims. Errors: as ExportFolderOf
// (model_folder.h); for an object store also those of worker::OpenVolume, which reads the variables of this process
// where spec.storage says nothing.
absl::StatusOr<worker::Volume> CheckpointFolderOf(const kube::Object& job, const std::filesystem::path& claims);

// The newest that has a manifest; nullopt: there is none, or the folder cannot be read. Its files are not verified.
std::optional<CheckpointOnDisk> NewestCheckpoint(const worker::Volume& volume);

// The largest term that a coordinator has claimed; 0: none. Errors: DataLoss, those of the file system.
absl::StatusOr<int64_t> ClaimedTerm(const worker::Volume& volume);

}  // namespace medley::cli
