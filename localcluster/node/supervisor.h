// Starts processes, writes their output to logs, and reports when they end. One thread does all of it.
//
// That thread is the parent in the sense of PR_SET_PDEATHSIG: when it ends, because of Stop or because the whole
// program was killed, the kernel kills every process that it started. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "localcluster/node/spawn.h"

namespace medley::localcluster {

struct ProcessExit {
  int exit_code = 0;  // 128 + signal if a signal killed it
  int signal = 0;
  base::WallTime finished_at;
};

// A started process, shared by the supervisor and the pod. Thread-safe.
class Process {
 public:
  Process(pid_t pid, base::WallTime started_at) : pid_(pid), started_at_(started_at) {}
  pid_t pid() const { return pid_; }
  base::WallTime started_at() const { return started_at_; }
  // nullopt while the process runs.
  std::optional<ProcessExit> exit() const;
  // Signals the whole process group. Does nothing after the end, when the number may belong to another process.
  void Signal(int number);

 private:
  friend class Supervisor;
  // Kills the rest of the group, reaps the leader and stores its exit.
  void Reap(int pidfd, base::WallTime now);

  const pid_t pid_;
  const base::WallTime started_at_;
  mutable base::Mutex mutex_;
  std::optional<ProcessExit> exit_ ABSL_GUARDED_BY(mutex_);
};

class Supervisor {
 public:
  explicit Supervisor(base::Clock& clock);
  ~Supervisor();
  absl::Status Start();
  // Kills the processes that still run, without a grace period, and joins. Idempotent.
  void Stop();

  struct Launch {
    SpawnSpec spec;
    std::filesystem::path log;
    int64_t log_bytes = 0;
    // Called on the supervisor's thread when exit() is set and the log is complete. Must not block.
    std::function<void()> on_exit;
  };
  // Returns when exec has succeeded. Errors: those of Spawn; Unavailable after Stop.
  absl::StatusOr<std::shared_ptr<Process>> Run(Launch launch);

 private:
  class Loop;
  base::Clock& clock_;
  std::unique_ptr<Loop> loop_;
};

}  // namespace medley::localcluster
