// The processes of a program on one unit: starts them, reads what they print, signals them and ends them.
//
//   MEDLEY_ASSIGN_OR_RETURN(auto program, ProgramProcesses::Start(options));
//   while (!program->ended()) ...;      // or failure()
//   program->Stop(base::seconds(10));   // also all processes that they have started
//
// Each process leads a process group of its own. This process adopts what they leave behind (PR_SET_CHILD_SUBREAPER),
// so Stop ends processes that have left their group too; for that, all children of this process must be the program's.
// The kernel kills the processes when the thread that has called Start ends, and so when this process is killed.
//
// Thread-safe. A thread of its own reads and waits.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace medley::worker {

struct ProcessesOptions {
  std::vector<std::string> command;                    // the first word is looked for in PATH, unless it has a '/'
  std::vector<std::vector<std::string>> environments;  // of each process, at least one; the first has the PATH
  int first_rank = 0;
  // Called by the reading thread: each line that a process prints, and those of them that are to be shown.
  std::function<void(int rank, std::string_view line)> see;
  std::function<void(int rank, std::string_view line)> show;
  std::function<void()> changed;  // a process has ended; by the reading thread
};

// How the first process ended that did not end with 0.
struct ProcessFailure {
  int rank = 0;
  int wait_status = 0;
  std::string words;  // the end of its traceback or log
};

class ProgramProcesses {
 public:
  // Errors: NotFound or PermissionDenied (the command), ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<ProgramProcesses>> Start(ProcessesOptions options, base::Clock& clock);
  ~ProgramProcesses();  // Stop at once

  bool ended() const;  // all of them
  std::optional<ProcessFailure> failure() const;
  std::vector<std::pair<int, int>> PidOfRank() const;  // of the processes that have not ended
  // Sends the signal to the processes that have a handler for it: a program that is still starting would be killed by
  // it. Returns how many got it.
  int SignalHandlers(int signal) const;
  void Freeze();  // SIGSTOP, for all that is in their groups, until Stop
  // SIGTERM; SIGKILL for what is left after `grace`. Idempotent. Returns when none is left, at most 2 s after `grace`.
  void Stop(base::nanoseconds grace);

 private:
  class Rep;
  explicit ProgramProcesses(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
