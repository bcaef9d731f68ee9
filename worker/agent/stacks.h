// Where the processes of a program are that hangs, as py-spy sees it. Thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace medley::worker {

// Prints the stacks of the processes, by their ranks, with the py-spy that `path` ("/usr/bin:/bin") has: at most 64 KiB
// of each, and for at most 10 s. Without one, or where it may not look, that is said in a line.
void PrintStacks(const std::vector<std::pair<int, int>>& pid_of_rank, const std::string& path,
                 const std::vector<std::string>& environment, base::Clock& clock);

}  // namespace medley::worker
