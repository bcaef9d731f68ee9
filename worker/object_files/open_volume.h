// Opens the place of a job's folder: a folder of this machine, or a prefix of an object store.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>

#include "common/object_store/settings.h"
#include "worker/checkpoint/files.h"

namespace medley::worker {

// `root`: a path, or s3://bucket/prefix or gs://bucket/prefix; empty: the job has none. `also`: another address that is
// read through the same files, as checkpoint.from; empty: none. Where neither is in an object store, no variable is
// read. Sends no request. Errors: InvalidArgument naming the variable (common/object_store/README.md) or the address;
// Unimplemented (https:// is only read).
absl::StatusOr<Volume> OpenVolume(const std::filesystem::path& root, const object_store::GetVariable& get,
                                  const std::string& also = "");

// Writes, reads, lists and removes a small object in the job's folder, so that a right which is missing is known at
// once. OK for a folder of the machine. Errors: those of the store.
absl::Status CheckRights(const Volume& volume);

// Copies all objects below a folder in an object store, at any depth, into a folder of this machine, which it creates.
// Each file is complete when it has its name. Errors: NotFound (no such folder), those of the store and the system.
absl::Status FetchFolder(const Volume& from, const std::filesystem::path& folder, const std::filesystem::path& to);

}  // namespace medley::worker
