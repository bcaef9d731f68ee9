// Where `medley run` finds the finished model of its job, and where it puts it.
//
// The model lies on the job's checkpoint volume, which the process node keeps on this machine, or in an object store. A
// job without either gets a volume in the run folder, because its model would be lost otherwise.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>

#include "kube/object.h"

namespace medley::cli {

// Gives a job that keeps checkpoints nowhere a volume of this run; returns whether it did. Pure.
bool EnsureCheckpointVolume(kube::Object& job);

// The folder of the model that a complete job has exported. `claims` is the process node's folder of claims. Errors:
// FailedPrecondition when the volume is of a kind that is not a folder of this machine. Pure. An address where the job
// keeps its model in an object store.
absl::StatusOr<std::filesystem::path> ExportFolderOf(const kube::Object& job, const std::filesystem::path& claims);

// Checks, before the job runs, that a model can be written to `to`: it does not exist, is empty, or contains an earlier
// model. Errors: AlreadyExists.
absl::Status CheckModelFolder(const std::filesystem::path& to);

// Gives the finished model in `made`, a folder on the same file system, the name `to`; replaces an earlier model.
// Errors: those of the file system.
absl::Status PlaceModel(const std::filesystem::path& made, const std::filesystem::path& to);

// Copies the model; replaces an earlier one. Errors: NotFound (the job has exported no model), those of the file
// system.
absl::Status CopyModel(const std::filesystem::path& from, const std::filesystem::path& to);

// Copies what the program of a job has saved in the volume that EnsureCheckpointVolume gave it, without Medley's own
// files. False: the job names a volume of its own. Errors: PermissionDenied (links), those of the file system.
absl::StatusOr<bool> TakeSaved(const kube::Object& job, const std::filesystem::path& claims,
                               const std::filesystem::path& to);

// The same as CopyModel for a job, wherever it keeps its model; from an object store with the variables of this
// process. Errors: also those of ExportFolderOf and of the store.
absl::Status TakeModelOf(const kube::Object& job, const std::filesystem::path& claims, const std::filesystem::path& to);

}  // namespace medley::cli
