// Starts one program: fork, a few async-signal-safe calls, exec.
//
// The child leads a new session and process group. It has only descriptors 0 (/dev/null), 1 and 2 (one pipe), has
// default signal handlers, and is killed when the thread that spawned it ends (PR_SET_PDEATHSIG).
//
// A confined child can never gain privileges (no_new_privs), and where the machine allows it, it has a user namespace
// of its own with the same user and group numbers: it cannot read the memory or environment of the user's other
// processes, and files keep their owners (docs/adr/0018).
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "localcluster/node/unique_fd.h"

namespace medley::localcluster {

struct SpawnSpec {
  std::string program;                   // a path; PATH is not searched
  std::vector<std::string> arguments;    // argv, including argv[0]
  std::vector<std::string> environment;  // "NAME=value"
  std::string working_folder;
  std::vector<std::string> cgroup_procs;    // cgroup.procs files that the child enters before exec
  std::optional<int64_t> data_limit_bytes;  // RLIMIT_DATA
  std::optional<int> network_namespace;     // descriptor of the one that the child enters, borrowed
  bool confined = false;
};

struct Spawned {
  pid_t pid = 0;
  UniqueFd pidfd;
  UniqueFd output;              // stdout and stderr; non-blocking
  bool user_namespace = false;  // the child has its own
};

// Errors: those of fork and exec (NotFound, PermissionDenied, ...), with the step that failed.
absl::StatusOr<Spawned> Spawn(const SpawnSpec& spec);

}  // namespace medley::localcluster
