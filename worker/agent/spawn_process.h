// Starts one process of a program in a process group of its own. Thread-safe.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace medley::worker {

// The file that a command names: itself when it has a '/', else the first executable file of that name in the folders
// of `path` ("/usr/bin:/bin"). Errors: NotFound, PermissionDenied (it may not be executed).
absl::StatusOr<std::string> FindCommand(const std::string& command, const std::string& path);

struct SpawnedProcess {
  pid_t pid = -1;
  int output = -1;  // what it prints, stdout and stderr together; does not block; the caller closes it
};

// `program`: from FindCommand. The process has the default action for every signal, blocks none, reads nothing
// (/dev/null), and is killed when the calling thread ends. Errors: NotFound or PermissionDenied (it cannot be
// executed), ResourceExhausted (no further process or file).
absl::StatusOr<SpawnedProcess> SpawnProcess(const std::string& program, const std::vector<std::string>& arguments,
                                            const std::vector<std::string>& environment);

}  // namespace medley::worker
