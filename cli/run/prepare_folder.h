// Makes the folder of a run ready: a new one, the one to continue, or one in which an earlier run has ended.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/run_lock.h"
#include "cli/run/saved_run.h"

namespace medley::cli {

struct FolderOptions {
  std::filesystem::path folder;    // absolute
  std::filesystem::path manifest;  // as the user named it, for messages
  bool resume = false;
  bool own = false;  // not named by the user, so what an earlier run left there may be removed
};

struct PreparedFolder {
  RunLock lock;
  bool existed = false;              // before this run
  std::optional<SavedRun> earlier;   // the run to continue; only with FolderOptions.resume
  int64_t claimed_term = 0;          // likewise: of its last coordinator
  std::vector<std::string> remarks;  // for the user
};

// The process node's folder of claims in a run folder.
std::filesystem::path ClaimsOf(const std::filesystem::path& run_folder);

// `job`: of the manifest. A run that ended before its job was complete, and that has a checkpoint, is not lost when
// another one begins in its folder: the folder is renamed to FOLDER.previous, in place of an earlier one of that name.
// What other runs left is removed from a folder that the user has not named.
//
// Errors, sentences for users: NotFound (nothing to continue), FailedPrecondition (another run uses the folder, or the
// run cannot be continued), those of MakeRunFolder and of the file system.
absl::StatusOr<PreparedFolder> PrepareRunFolder(const FolderOptions& options, const kube::Object& job);

}  // namespace medley::cli
