// What the processes below this one use of their unit.
#pragma once

#include <cstdint>
#include <filesystem>

namespace medley::worker {

struct ProcessUse {
  double processor_seconds = 0;  // since each of them began, also of their own children that have ended
  double delay_seconds = 0;      // for which their threads could run, and waited for a processor
  int64_t own_bytes = 0;         // the most that they had resident without what files back, at any time
  int64_t shared_bytes = 0;      // of files, of the process that has most of them
};

// What all processes use that descend from `ancestor` and have not ended. `root`: of /proc, for tests. What cannot be
// read counts as nothing. Thread-safe.
ProcessUse UseOfDescendants(int ancestor, const std::filesystem::path& root = "/");

}  // namespace medley::worker
