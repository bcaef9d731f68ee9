// The file in which a container leaves a message at its end, and what of it the pod's status has, as a kubelet does it:
// the last 4,096 bytes of the file at terminationMessagePath. When it is empty and the container has failed, with
// terminationMessagePolicy FallbackToLogsOnError, the last 80 lines of the log, of at most 2,048 bytes.
//
// The container may have put anything in the file's place: a link, a pipe, a huge file. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <string>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::localcluster {

// What the container's spec says, else Kubernetes' default.
std::string TerminationMessagePath(const kube::Json& container);

// An empty file, and its folder, before the container starts. Errors: those of the file system.
absl::Status CreateTerminationLog(const std::filesystem::path& file);

// Valid UTF-8; empty: the container has left no message, or one that cannot be read.
std::string ReadTerminationMessage(const kube::Json& container, const std::filesystem::path& file,
                                   const std::filesystem::path& log, int exit_code, base::Clock& clock);

}  // namespace medley::localcluster
