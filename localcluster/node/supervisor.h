// Starts processes, keeps their output, and tells when they end. One thread does all of it.
//
// That thread is the parent in the sense of PR_SET_PDEATHSIG: when it ends, by Stop or because the whole
// program was killed, the kernel kills every process it started. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "localcluster/node/spawn.h"

namespace medley::kube {

struct ProcessExit {
  int exit_code = 0;  // 128 + signal when it was killed
  int signal = 0;
  base::WallTime finished_at;
};

// One started process; shared by the supervisor and the pod. Thread-safe.
class Process {
 public:
  Process(pid_t pid, base::WallTime started_at) : pid_(pid), started_at_(started_at) {}
  pid_t pid() const { return pid_; }
  base::WallTime started_at() const { return started_at_; }
  // No value: it runs.
  std::optional<ProcessExit> exit() const;
  // To the whole group. After the end: nothing happens (the number may be another's by then).
  void Signal(int number);

 private:
  friend class Supervisor;
  // Kills what is left of the group, waits for the leader, and keeps its exit.
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
  // Kills what still runs, without grace, and joins. Idempotent.
  void Stop();

  struct Launch {
    SpawnSpec spec;
    std::filesystem::path log;
    int64_t log_bytes = 0;
    // After exit() has its value and the log is complete; from the supervisor's thread, must not block.
    std::function<void()> on_exit;
  };
  // Returns when the program has been executed. Errors: as Spawn; Unavailable after Stop.
  absl::StatusOr<std::shared_ptr<Process>> Run(Launch launch);

 private:
  class Loop;
  base::Clock& clock_;
  std::unique_ptr<Loop> loop_;
};

}  // namespace medley::kube
