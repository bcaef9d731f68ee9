// How much memory this process may use.
#pragma once

#include <cstdint>
#include <filesystem>

namespace medley::base {

// The smallest of: the memory of the machine, the limits of the process's control group and of those above it (version
// 2, or the memory controller of version 1), and RLIMIT_AS. Linux gives more memory than it has and ends a process that
// uses it, so that whoever turns a few bytes of input into many asks first. `root`: of /proc and /sys, for tests.
// Thread-safe.
//
// Where a process has no control group of its own (`medley run` without the right to make one), MEDLEY_MEMORY_LIMIT
// says how many bytes it may use.
int64_t MemoryLimit(const std::filesystem::path& root = "/");

// The resident memory of this process without the pages of files, in bytes; 0 when it is unknown.
int64_t MemoryInUse(const std::filesystem::path& root = "/");

}  // namespace medley::base
