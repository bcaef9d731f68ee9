// One program that `medley run` starts: the operator, the scheduler.
//
// Its output goes to a file. It dies with the thread that started it (PR_SET_PDEATHSIG), so nothing outlives
// `medley run`, however that ends. Not thread-safe: one owner.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "localcluster/node/spawn.h"

namespace medley::cli {

class ChildProcess {
 public:
  struct Options {
    std::filesystem::path program;
    std::vector<std::string> arguments;  // without argv[0]
    std::filesystem::path log;
  };

  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const Options& options);
  ~ChildProcess();  // Stop with two seconds of grace

  pid_t pid() const { return spawned_.pid; }
  // The exit status once it has ended ("exit code 1", "signal 9") and its output is in the log; nothing while it runs.
  std::optional<std::string> Ended();
  // SIGTERM, then SIGKILL after `grace`. Idempotent.
  void Stop(base::nanoseconds grace);
  // VmHWM in bytes; 0 when it has gone.
  int64_t PeakMemory() const;

 private:
  ChildProcess(kube::Spawned spawned, std::filesystem::path log);
  bool WaitFor(int timeout_ms);

  kube::Spawned spawned_;
  std::optional<std::string> ended_;
  std::jthread pump_;  // pipe -> log
};

}  // namespace medley::cli
