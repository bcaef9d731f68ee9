// Runs a server program until SIGTERM or SIGINT. Called once, by main, before any thread starts.
#pragma once

#include <absl/status/status.h>

#include <functional>

namespace medley::sched {

// Calls `serve`, which returns when the function that it gets has returned: that one waits for the signal. Returns the
// exit code of the program: 0, or 1 after printing "PROGRAM: ERROR" if `serve` fails.
int RunUntilSignal(const char* program, const std::function<absl::Status(const std::function<void()>&)>& serve);

}  // namespace medley::sched
