// Which environment variables a pod may set. Pure.
//
// A pod's program runs on the user's machine as that user, without an image of its own. Variables that make the dynamic
// loader, libc or another library load code, or read or write other files, would let a pod run any program. They are
// refused; the names of jobs and of their authors (MEDLEY_*, OMP_NUM_THREADS, ...) are not.
#pragma once

#include <absl/status/status.h>

#include <string_view>

namespace medley::localcluster {

// PATH of every program; a pod cannot change it.
inline constexpr std::string_view kProgramPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// Errors: PermissionDenied for a name with such power, InvalidArgument for one that is no name.
absl::Status CheckVariableName(std::string_view name);

}  // namespace medley::localcluster
