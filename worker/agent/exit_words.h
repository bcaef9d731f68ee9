// Says in words how a process of a program ended. Pure, thread-safe.
#pragma once

#include <deque>
#include <string>

namespace medley::worker {

// `wait_status`: of waitpid. "exited with 3", "was killed by SIGKILL; ...".
std::string HowItEnded(int wait_status);

// What the last lines of a log say of a failure: from the last Python traceback on, else the last lines. At most 1500
// bytes.
std::string LastWords(const std::deque<std::string>& lines);

}  // namespace medley::worker
