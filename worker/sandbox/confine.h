// Takes rights from this process that training does not need, so that a model which found a way to do more than compute
// (worker/exported/pure_calls.h refuses what is known) can do little with it.
//
// From then on, for the process and all its threads:
// - It starts no program, traces no process, mounts nothing, loads no code into the kernel, enters no namespace and
//   opens no raw, packet or other unusual socket: such calls fail with EPERM or EACCES (seccomp).
// - Threads that exist later write, create, rename and remove files only in the folders that are given, and write to
//   the files that are given and to devices that exist (Landlock). Threads that exist already are not confined so: call
//   it before threads of the job are created.
//
// What remains possible: reading the files that its user may read, and TCP connections. docs/operate/security.md says
// so.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <vector>

namespace medley::worker {

struct Confinement {
  std::vector<std::filesystem::path> writable;  // folders; those that do not exist are created
  std::vector<std::filesystem::path> files;     // that exist and are written besides, such as a termination log
  std::vector<std::filesystem::path> programs;  // that may be started; empty: none
  bool gpus = false;                            // NVIDIA's libraries use sockets between processes
  bool offline = false;                         // no sockets but those that are open
};

// Returns what could not be had, for the log: "the kernel has no Landlock"; empty: everything is in force. Errors:
// Internal, when the kernel refuses what it has; then no model may be computed. Programs with sanitizers, which write
// reports and trace themselves, are not confined.
absl::StatusOr<std::string> Confine(const Confinement& confinement);

}  // namespace medley::worker
